internal import Foundation
internal import LarderGraphQL
internal import LarderOperations
internal import LarderRecords
internal import Logging
internal import Synchronization

/// Where a program works: the cache of one backend and user, and the way to its server.
///
/// All of it may be used from any task or thread. Reads are synchronous and take microseconds; a user interface may
/// make them while it draws its first frame.
public final class Partition: Sendable {
    let core: PartitionCore
    let transport: (any GraphQLTransport)?

    convenience init(
        name: String, cache: RecordCache, intent: Intent, folder: URL, schema: Schema,
        transport: (any GraphQLTransport)?, options: Store.Options
    ) {
        let core = PartitionCore(
            name: name, cache: cache, intent: intent, folder: folder, schema: schema.index, options: options)
        self.init(core: core, transport: transport)
    }

    private init(core: PartitionCore, transport: (any GraphQLTransport)?) {
        self.core = core
        self.transport = transport
    }

    /// The same partition, with another way to the server.
    func with(transport: any GraphQLTransport) -> Partition { Partition(core: core, transport: transport) }

    func close() throws(LarderError) { try core.close() }
}

/// What all handles of a partition share.
final class PartitionCore: Sendable {
    let name: String
    let cache: RecordCache
    let intent: Intent
    /// The store's.
    let folder: URL
    /// The time of day, which moves as it likes.
    let now: @Sendable () -> Date
    let operations: OperationCache
    let layers: LayerBook
    let watchers: WatcherIndex
    /// Looks for what other processes have queued, once there is a queue.
    private let following = Mutex<Task<Void, Never>?>(nil)
    let logger: Logger

    init(
        name: String, cache: RecordCache, intent: Intent, folder: URL, schema: SchemaIndex, options: Store.Options
    ) {
        self.name = name
        self.cache = cache
        self.intent = intent
        self.folder = folder
        now = options.now
        logger = options.logger
        operations = OperationCache(schema, updaters: options.updaters)
        layers = LayerBook(name: name, cache: cache, operations: operations)
        let watchers = WatcherIndex()
        self.watchers = watchers
        cache.observe(while: { !watchers.isEmpty }) { watchers.publish($0) }
    }

    /// Shows what is queued already, by whatever process, if anything ever was.
    func open() throws(LarderError) {
        guard let database = try intent.database(making: false) else { return }
        try layers.reload(database.mutations)
        followOthers()
    }

    /// Shows from now on what other processes queue, and no more what they have carried out.
    func followOthers() {
        following.withLock { following in
            guard following == nil else { return }
            following = Task { [cache, intent, layers, logger, weak watchers] in
                // What goes wrong is told once when it begins, and once when it has ended.
                var failing: String?
                // Until it could be done: the database tells of a change once.
                var mustReload = false
                while !Task.isCancelled, watchers != nil {
                    do {
                        try await Task.sleep(for: Self.followingPause)
                        guard let database = try intent.database(making: false) else { continue }
                        if try database.hasChanged() { mustReload = true }
                        if mustReload {
                            try layers.reload(database.mutations)
                            intent.bell.ring()
                            mustReload = false
                        }
                        try await cache.noticeOtherProcesses()
                        if failing != nil { logger.notice("what other processes queue can be read again") }
                        failing = nil
                    } catch is CancellationError { return } catch {
                        if let error = error as? LarderError, error.code == .parked { return }
                        if let error = error as? OperationsError, error.code == .closed { return }
                        if let error = error as? RecordError, error.code == .closed { return }
                        guard failing != "\(error)" else { continue }
                        failing = "\(error)"
                        logger.warning("what other processes queue cannot be read", metadata: ["error": "\(error)"])
                    }
                }
            }
        }
    }

    /// Others' changes are seen within about a tenth of a second.
    private static let followingPause = Duration.milliseconds(80)

    func close() throws(LarderError) {
        following.withLock { $0 }?.cancel()
        watchers.close()
        do { try cache.close() } catch { throw LarderError(error) }
    }
}
