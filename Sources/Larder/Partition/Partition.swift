internal import Foundation
internal import LarderGraphQL
internal import LarderRecords
internal import Logging

/// Where a program works: the cache of one backend and user, and the way to its server.
///
/// All of it may be used from any task or thread. Reads are synchronous and take microseconds; a user interface may
/// make them while it draws its first frame.
public final class Partition: Sendable {
    let core: PartitionCore
    let transport: (any GraphQLTransport)?

    convenience init(
        name: String, cache: RecordCache, intent: Intent, folder: URL, schema: Schema,
        transport: (any GraphQLTransport)?, logger: Logger, now: @escaping @Sendable () -> Date
    ) {
        let core = PartitionCore(
            name: name, cache: cache, intent: intent, folder: folder, schema: schema.index, logger: logger, now: now)
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
    let watchers: WatcherIndex
    let logger: Logger

    init(
        name: String, cache: RecordCache, intent: Intent, folder: URL, schema: SchemaIndex, logger: Logger,
        now: @escaping @Sendable () -> Date
    ) {
        self.name = name
        self.cache = cache
        self.intent = intent
        self.folder = folder
        self.now = now
        self.logger = logger
        operations = OperationCache(schema)
        let watchers = WatcherIndex()
        self.watchers = watchers
        cache.observe { watchers.publish($0) }
    }

    func close() throws(LarderError) {
        watchers.close()
        do { try cache.close() } catch { throw LarderError(error) }
    }
}
