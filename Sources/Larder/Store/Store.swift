public import Foundation
package import LarderFiles
import LarderGraphQL
import LarderOperations
import LarderRecords
public import Logging
public import Metrics
public import Tracing

/// A folder in which a program keeps what it needs of a server, and what it has to tell it.
///
/// ```swift
/// let store = try Store.open(at: folder, schema: Schema(parsing: text))
/// let app = try store.partition(server: .http(url))
/// ```
///
/// Opening uses no network, and waits for other processes no longer than its options say. A store is open once in a
/// process.
public final class Store: Sendable {
    /// How a store is opened.
    public struct Options: Sendable {
        /// The record cache's greatest size in bytes: 64 GiB, and 2 GiB on a phone. Address space is reserved for it as
        /// far as there is any; disk is not.
        public var maximumSize = RecordCache.Options.defaultMaximumSize
        /// The bytes of memory that one answer from the cache may take: 1 GiB, of which a million objects of twenty short
        /// fields each take about half, and 128 MiB on a phone. A larger answer is `records.tooLarge`.
        public var maximumAnswerSize = RecordCache.Options.defaultMaximumAnswerSize
        /// Whether nothing may be written; the store must exist.
        public var isReadOnly = false
        /// Whether every page is looked at when the store is opened, and not only after an unclean close.
        public var verifiesAlways = false
        /// Where reads, commits, requests, refreshes, transfers and the queue are counted and timed; nil for nowhere.
        public var metrics: (any MetricsFactory)?
        /// What makes a span for each request, with the operation's name; nil for none.
        public var tracer: (any Tracer)?
        /// How long opening, and each write, may wait for other processes.
        public var lockTimeout = Duration.seconds(5)
        /// How long a call that comes while the store is suspended waits for `resume`, before it throws `.suspended`. A
        /// call that is not `async` keeps its thread meanwhile.
        public var suspensionWait = Duration.zero
        /// The program's name, for the errors of other processes that wait for this one.
        public var label = "larder"
        /// Where diagnostics go: events that are not worth an error, and failures that no caller can receive.
        public var logger = Logger(label: "larder")
        /// What works out what mutations do to lists, by the names that they say.
        public var updaters: [String: ListUpdater] = [:]
        /// Gives the keys that credentials are sealed with; nil for the Keychain in an app for a phone, and elsewhere for a
        /// file beside the store's folder.
        public var keys: (any KeyProvider)?
        /// The folder relative to which the files of transfers are noted, so that they are found where it has moved; nil:
        /// their whole paths are noted. In an app for a phone it is the app's container.
        public var home: URL? = systemHome
        /// By what a copy of the store is known, whose queue may have been sent by the original; nil: it is not known.
        public var deviceTokens: (any DeviceTokens)? = systemDeviceTokens
        /// Gives the provider that refreshes credentials, and that is told when a user signs out.
        public var identityProvider: @Sendable (PartitionIdentity) -> (any IdentityProvider)? = { _ in nil }
        /// How sessions behave.
        public var session = Session.Options()
        /// The time of day, for the times noted with mutations; tests hold it.
        public var now: @Sendable () -> Date = { Date() }

        /// Called after each step of a switch; for programs that are killed there.
        package var reachedInSwitch: @Sendable (EnvironmentSwitch.KillPoint) -> Void = { _ in }
        /// Called after each look at what other processes have committed; for programs that commit just then.
        package var lookedAtOthers: @Sendable () -> Void = {}
        /// What no notification tells of is found after so long: a process was killed before it gave one.
        package var longestWait = Duration.seconds(60)
        /// Of a temporary store: it is removed when nothing holds it any more.
        var temporaryFolder: TemporaryFolder?
        /// By which the store makes its calls of the system; LMDB and SQLite make others.
        package var files = FileSystem()
        /// As `RecordCache.Options.comparesChecksums`.
        package var comparesChecksums = true

        /// 64 GiB of address space, writable, and five seconds for every wait.
        public init() {}
    }

    /// Where the store is.
    public let folder: URL
    /// The schema by which it is read and written.
    public let schema: Schema
    /// As they were given when it was opened.
    package let options: Options
    /// Where in the program it was opened.
    private let openedBy: String
    let partitions: OpenPartitions
    let operationsStore: OperationsStore
    var suspension: Suspension { operationsStore.suspension }

    private init(folder: URL, schema: Schema, options: Options, openedBy: String) {
        self.openedBy = openedBy
        self.folder = folder
        self.schema = schema
        self.options = options
        StoreExposure.notice(in: folder, options)
        operationsStore = OperationsStore(
            folder: folder, options: options.operations, longestWait: options.longestWait)
        partitions = OpenPartitions(
            operationsStore: operationsStore, logger: options.logger, lookedAtOthers: options.lookedAtOthers)
    }

    /// Opens the store in a folder, which is made unless it is to be read only.
    ///
    /// The files are opened by `partition`; this fails for nothing on disk. Files and folders of the store that other
    /// users may read or change, as older versions made them, become this user's alone, unless it is to be read only;
    /// `options.logger` is told of them.
    /// A second opening of the same store in this process throws an error that names `file` and `line`.
    public static func open(
        at folder: URL, schema: Schema, options: Options = Options(), file: String = #fileID, line: Int = #line
    ) throws(LarderError) -> Store {
        Store(folder: folder, schema: schema, options: options, openedBy: "\(file):\(line)")
    }

    /// Opens the store with a schema whose text is parsed only if it has changed since: the compiled schema is kept in
    /// the store.
    ///
    /// - Throws: `.schema`, with line and column.
    public static func open(
        at folder: URL, schemaText texts: [String], options: Options = Options(), file: String = #fileID,
        line: Int = #line
    ) throws(LarderError) -> Store {
        let kept = KeptSchema(folder: folder, texts: texts, options.files)
        let schema: Schema
        if let compiled = kept.load() {
            schema = compiled
        } else {
            schema = try Schema(parsing: texts)
            if !options.isReadOnly { kept.save(schema, options.logger) }
        }
        return Store(folder: folder, schema: schema, options: options, openedBy: "\(file):\(line)")
    }

    /// The schema with which a program opened the store last, where it gave the schema's text; nil where the folder has
    /// none.
    package static func keptSchema(in folder: URL) -> Schema? { KeptSchema.newest(in: folder, FileSystem()) }

    /// The current partition, of whatever environment; that of a program which names none where none was ever chosen.
    ///
    /// The first call opens the record cache: quick after a clean close, otherwise O(n) in its size.
    ///
    /// - Parameter server: The way to its server: `.http(url)` of LarderHTTP, `.appSync(url, authorization:)` of
    ///   LarderAWS, or a transport of the program's own. Without one, whatever needs the network fails at once.
    /// - Throws: `.noEnvironment` where the store was switched to no environment; `.parked` once the store was closed;
    ///   `records.damaged`, `records.futureFormat`, `records.busy`, `records.alreadyOpen`, `records.notWritable`,
    ///   `records.full` or `records.missing`; the cause says which file.
    public func partition(server: (any GraphQLTransport)? = nil) throws(LarderError) -> Partition {
        let current: CurrentPartition?
        do { current = try operationsStore.database(making: false)?.environments.current() } catch {
            throw LarderError(translating: error)
        }
        guard current == nil || current?.partition != nil else {
            throw LarderError(.noEnvironment, "No environment is chosen; open the store with one, or switch to one")
        }
        if let stored = current?.partition { return try self.current(stored, server) }
        return try partition(unlessLeft: Self.unnamedPartition, server)
    }

    /// Opens a partition, whether or not it is the current one.
    package func partition(
        named name: String, _ server: (any GraphQLTransport)?
    ) throws(LarderError) -> Partition {
        let partition = try partitions.partition(name) { () throws(LarderError) in
            guard !suspension.isAsked else { throw .suspended }
            return try open(name)
        }
        if try operationsStore.database(making: false) != nil { partitions.followOthers() }
        return server.map(partition.with(server:)) ?? partition
    }

    private func open(_ name: String) throws(LarderError) -> Partition {
        if !options.isReadOnly { Self.prepareForSystem(folder, options.files) }
        try StoreRestoration.finish(folder, partition: name, options: options)
        var options = options.records(of: folder)
        options.openedBy = openedBy
        if let instruments = self.options.instruments, instruments.measures {
            options.committed = { instruments.noteCommit($0) }
        }
        options.layerFailed = { [logger = self.options.logger] failure in
            logger.warning(
                "what a mutation is expected to do cannot be shown",
                metadata: [
                    "key": "\(failure.key)", "error": "\(failure.error)",
                ])
        }
        let cache: RecordCache
        do {
            cache = try RecordCache(
                folder: Self.cacheFolder(of: folder, partition: name).path, stamp: name, options: options)
        } catch { throw LarderError(error) }
        let partition = Partition(
            name: name, cache: cache, operationsStore: operationsStore, folder: folder, schema: schema, transport: nil,
            options: self.options, followOthers: { [weak partitions] in partitions?.followOthers() })
        do throws(LarderError) { try partition.core.open() } catch {
            // The first failure is the one that is thrown.
            try? partition.close()
            throw error
        }
        return partition
    }

    /// Closes the store cleanly, so that opening it again, with `open`, is quick. Its partitions throw `.parked` from
    /// now on, and so does asking for one; their streams end. Closing again does nothing.
    ///
    /// Reads that are under way end as they would have. Waiting writes that had not begun throw `.parked`.
    public func close() throws(LarderError) {
        var failure: LarderError?
        // No other call closes or opens a file from here on.
        suspension.close()
        let open = partitions.close()
        for partition in open {
            do throws(LarderError) { try partition.close() } catch { failure = failure ?? error }
        }
        // Runners and calls that a suspension holds wake to a store that is closed.
        defer {
            suspension.lift()
            operationsStore.changeSignal.notify()
            for partition in open { partition.core.transfers.notifyAll() }
            options.temporaryFolder?.remove()
        }
        try operationsStore.close()
        if let failure { throw failure }
    }
}

extension Store.Options {
    /// What the options measure with; nil where that is nothing.
    var instruments: Instruments? { Instruments(metrics, tracer) }

    var operations: OperationsDatabase.Options {
        var options = OperationsDatabase.Options()
        options.isReadOnly = isReadOnly
        options.busyTimeout = lockTimeout
        options.home = home.map { HomeFolder($0.standardizedFileURL.path) }
        options.device = deviceTokens.map { DeviceMark($0) }
        options.foundCopied = { [logger] count in
            logger.warning(
                "the store is a copy; what the original may have sent is set aside", metadata: ["mutations": "\(count)"]
            )
        }
        options.suspensionWait = suspensionWait
        options.verifiesAlways = verifiesAlways
        options.files = files
        return options
    }

    /// What a cache of the store in a folder is opened with: programs that watch the folder are told of each commit.
    func records(of store: URL) -> RecordCache.Options {
        var options = RecordCache.Options()
        options.watchedFolder = store.path
        options.now = { [now] in Int64((now().timeIntervalSince1970 * 1000).rounded()) }
        options.maximumSize = maximumSize
        options.maximumAnswerSize = maximumAnswerSize
        options.isReadOnly = isReadOnly
        options.verifiesAlways = verifiesAlways
        options.comparesChecksums = comparesChecksums
        options.lockTimeout = lockTimeout
        options.suspensionWait = suspensionWait
        options.label = label
        options.files = files
        return options
    }
}
