import Foundation
import LarderFiles
import LarderGraphQL
import LarderOperations
import LarderRecords
import Logging
import Synchronization

/// Where a program works: the cache of one backend and user, and the way to its server.
///
/// All of it may be used from any task or thread. Reads are synchronous and take microseconds; a user interface may
/// make them while it draws its first frame.
public final class Partition: Sendable {
    let core: PartitionCore
    let transport: (any GraphQLTransport)?

    convenience init(
        name: String, cache: RecordCache, operationsStore: OperationsStore, folder: URL, schema: Schema,
        transport: (any GraphQLTransport)?, options: Store.Options, followOthers: @escaping @Sendable () -> Void
    ) {
        let core = PartitionCore(
            name: name, cache: cache, operationsStore: operationsStore, folder: folder, schema: schema.index,
            options: options,
            followOthers: followOthers)
        self.init(core: core, transport: transport)
    }

    private init(core: PartitionCore, transport: (any GraphQLTransport)?) {
        self.core = core
        self.transport = transport
    }

    /// The same partition, with another way to the server.
    public func with(server: any GraphQLTransport) -> Partition { Partition(core: core, transport: server) }

    func close() throws(LarderError) { try core.close() }
}

/// What all handles of a partition share.
final class PartitionCore: Sendable {
    let name: String
    let cache: RecordCache
    let operationsStore: OperationsStore
    /// The store's.
    let folder: URL
    /// The time of day, which moves as it likes.
    let now: @Sendable () -> Date
    let operations: OperationCache
    let layers: QueuedLayers
    let watchers: WatcherIndex
    let transfers = TransferBook()
    let subscriptions = PartitionSubscriptions()
    let synchronizing = SynchronizationsUnderWay()
    /// What the runners of this process are doing.
    let runners = RunnerStates()
    /// The operations for which the server is being asked in the background.
    let refetched = Locked<Set<GraphQLOperation>>([])
    /// Looks for what other processes have queued and switched, from now on, if that is not done yet.
    let followOthers: @Sendable () -> Void
    private let parking = Atomic(false)
    let session: PartitionSession
    /// By which transfers make their calls of the system.
    let files: FileSystem
    let logger: Logger
    /// Nil where nothing is measured.
    let instruments: Instruments?

    init(
        name: String, cache: RecordCache, operationsStore: OperationsStore, folder: URL, schema: SchemaIndex,
        options: Store.Options,
        followOthers: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.cache = cache
        self.operationsStore = operationsStore
        self.folder = folder
        now = options.now
        logger = options.logger
        instruments = options.instruments
        files = options.files
        self.followOthers = followOthers
        session = PartitionSession(name: name, folder: folder, options: options)
        operations = OperationCache(schema, updaters: options.updaters)
        layers = QueuedLayers(name: name, cache: cache, operations: operations)
        let watchers = WatcherIndex()
        self.watchers = watchers
        cache.observe(while: { !watchers.isEmpty }) { watchers.publish($0) }
    }

    /// Shows mutations that are queued already, by whatever process, if any ever were.
    func open() throws(LarderError) {
        guard let database = try operationsStore.database(making: false) else { return }
        try layers.reload(database.mutations)
    }

    // MARK: Parking

    /// Whether another partition is the current one, or the store closed: streams and runners have nothing to wait for.
    var isParked: Bool { parking.load(ordering: .acquiring) }

    /// - Throws: `.parked`.
    func requireCurrent() throws(LarderError) {
        guard !isParked else { throw .parked }
    }

    /// The same as `requireCurrent`, once the store is not suspended any more.
    ///
    /// - Throws: `.parked`; `.suspended` where that takes longer than a call waits.
    func requireAwake() async throws(LarderError) {
        try requireCurrent()
        try await operationsStore.suspension.requireAwake()
        try requireCurrent()
    }

    /// Ends the streams and refuses calls, until it is the current one again. Work under way ends as it would have.
    func park() {
        parking.store(true, ordering: .releasing)
        subscriptions.close()
        watchers.close()
        session.park()
        operationsStore.changeSignal.notify()
        transfers.notifyAll()
    }

    /// Goes on where it was left. Streams that have ended are to be asked for anew.
    func unpark() throws(LarderError) {
        guard isParked else { return }
        if let database = try operationsStore.database(making: false) { try layers.reload(database.mutations) }
        watchers.reopen()
        subscriptions.reopen()
        parking.store(false, ordering: .releasing)
        operationsStore.changeSignal.notify()
    }

    func close() throws(LarderError) {
        parking.store(true, ordering: .releasing)
        subscriptions.close()
        watchers.close()
        session.close()
        do { try cache.close() } catch { throw LarderError(error) }
    }
}
