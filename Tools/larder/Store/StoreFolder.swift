import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderGraphQL
import LarderOperations
import LarderRecords

/// The folder that `--store` names.
struct StoreFolder: Sendable {
    let url: URL
    /// Which of its partitions is meant.
    let partition: String
    /// Whether the user named the partition.
    private let isChosen: Bool
    let files = FileSystem()
    /// Why the current partition could not be read, where another stands in for it.
    let unread: OperationsError?

    init(
        url: URL, partition: String, isChosen: Bool = false, unread: OperationsError? = nil
    ) throws(Failure) {
        self.url = url
        self.partition = partition
        self.isChosen = isChosen
        self.unread = unread
        guard try Self.look(at: url.path, files)?.kind ?? .folder == .folder else {
            throw Failure(usage: "The store \(url.path) is no folder")
        }
    }

    /// What is being worked on, for people.
    var heading: String {
        "store \(url.path)" + (partition == Store.unnamedPartition ? "" : ", partition \(partition)")
    }

    /// Whether there is a record cache, in whatever state.
    var isStore: Bool {
        get throws(Failure) {
            let cache = Store.cacheFolder(of: url, partition: partition).path
            return try names(in: cache).contains { Int($0) != nil }
        }
    }

    /// What is at a path; nil where there is nothing.
    static func look(at path: String, _ files: FileSystem) throws(Failure) -> FileStatus? {
        try Failure.typed { try OperationsDatabase.look(at: path, files) }
    }

    private func names(in folder: String) throws(Failure) -> [String] {
        do throws(FileError) { return try files.names(in: folder) } catch {
            guard error.code == .permissionDenied else { throw Failure(RecordError.translated(error)) }
            throw Failure(
                RecordError(
                    .notWritable,
                    "The store \(url.path) may not be read; give this user access to the folder and its files"))
        }
    }

    func requireStore() throws(Failure) {
        guard try !isStore else { return }
        guard try Self.look(at: url.path, files) != nil else {
            throw Failure(.noStore, .failure, "There is no store at \(url.path)")
        }
        // A store whose partition has no cache yet knows as much as one with an empty cache.
        if try hasQueue {
            throw Failure(
                .init(rawValue: LarderError.Code.miss.rawValue), .miss,
                "The partition \(partition) has no cache: nothing was stored in it yet; ingest or fetch "
                    + "something first",
                details: [("missing", .array([.array([])]))])
        }
        throw Failure(.noStore, .failure, "\(url.path) holds no store; ingest or fetch something into it first")
    }

    /// Refuses a folder that holds something else: a store is made in a new or empty one.
    func requireRoomForStore() throws(Failure) {
        guard try !isStore else { return }
        guard try Failure.typed({ try StoreContents.areAll(of: url, files) }) else {
            throw Failure(
                .notAStore, .refused,
                "\(url.path) holds something else than a store; name a new folder, or an empty one")
        }
    }

    /// The bytes of the store's data files.
    var byteCount: Int {
        get throws(Failure) {
            let cache = Store.cacheFolder(of: url, partition: partition).path
            var total = 0
            for name in try names(in: cache) {
                total += Int(clamping: try Self.look(at: "\(cache)/\(name)/data.mdb", files)?.size ?? 0)
            }
            return total
        }
    }

    // MARK: Opening

    /// Runs `body` with the cache alone, and closes it.
    ///
    /// - Parameter checksItself: Whether `body` compares what the cache holds with its checksums, so that opening need not.
    func withCache<Result>(
        _ access: Access, checksItself: Bool = false, _ output: Output, _ body: (RecordCache) async throws -> Result
    ) async throws -> Result {
        try requireStore()
        begin(output)
        prepare(access, output)
        let cache = try Store.openCache(
            at: url, partition: partition, options: options(access, checksItself: checksItself))
        return try await finishing(output, closing: { try cache.close() }) { try await body(cache) }
    }

    /// Runs `body`, and closes. What `body` has done is done, so that its result is told whatever becomes of the closing.
    private func finishing<Result>(
        _ output: Output, closing close: () throws -> Void, _ body: () async throws -> Result
    ) async throws -> Result {
        let result: Result
        do { result = try await body() } catch {
            // What failed first is what is told.
            try? close()
            throw error
        }
        do { try close() } catch {
            var failure = Failure(error)
            failure.message = "What was asked is done, but the store could not be closed cleanly: \(failure.message)"
            output.warn(failure)
        }
        return result
    }

    /// Empties a cache that cannot be opened.
    func replaceCache() throws {
        try CacheFolder(store: url, partition: partition, options(.writing)).rebuild(deadline: .now + .seconds(5))
    }

    /// Runs `body` with the store's partition, and closes the store.
    ///
    /// - Parameters:
    ///   - schema: Its texts; none for the schema that the store holds.
    ///   - operation: What `body` asks, and of which kind that must be; checked before a store is made for it.
    ///   - device: What `body` carries the queue out by; nil where it does not.
    func withPartition<Result>(
        _ access: Access, schema: [String], asking operation: (GraphQLOperation, kind: OperationKind?)? = nil,
        transport: (any GraphQLTransport)? = nil, on device: DeviceOptions? = nil, _ output: Output,
        _ body: (Partition) async throws -> Result
    ) async throws -> Result {
        if access == .reading { try requireStore() } else { try requireRoomForStore() }
        if access == .writing, let operation, !schema.isEmpty, try !isStore, try !hasQueue {
            try check(operation.0, operation.kind, Schema(parsing: schema))
        }
        var options = options(access)
        if let device, try hasQueue {
            options.deviceTokens = try await OperationsDatabase.using(url) { try device.tokens(for: $0) }
        }
        begin(output)
        prepare(access, output)
        let store =
            if schema.isEmpty {
                try Store.open(at: url, schema: keptSchema(), options: options)
            } else {
                try Store.open(at: url, schemaText: schema, options: options)
            }
        return try await finishing(output, closing: { try store.close() }) {
            guard isChosen else { return try await body(store.partition(server: transport)) }
            if transport != nil { try requireCurrent(store) }
            return try await body(store.partition(named: partition, transport))
        }
    }

    /// Refuses to ask a server for a partition that was left: what is queued there waits until its environment is
    /// entered again, and what another server answers is not stored there.
    private func requireCurrent(_ store: Store) throws {
        guard try (store.current()?.name ?? Store.unnamedPartition) != partition else { return }
        throw LarderError(
            .parked,
            "The partition \(partition) is not the current one, and a server is asked for that one alone; enter its "
                + "environment first")
    }

    private func check(_ operation: GraphQLOperation, _ expected: OperationKind?, _ schema: Schema) throws {
        let kind = try operation.kind(in: schema)
        guard expected ?? kind == kind else {
            throw Failure(
                usage: "The verb takes a \(expected?.rawValue ?? ""), and the operation is a \(kind.rawValue)")
        }
    }

    private func keptSchema() throws(Failure) -> Schema {
        guard let schema = Store.keptSchema(in: url) else {
            throw Failure(usage: "No schema: the store holds none; name a file by --schema")
        }
        return schema
    }

    /// Names what is worked on, and says why it may be another partition than is meant.
    private func begin(_ output: Output) {
        output.heading(heading)
        guard let unread else { return }
        var failure = Failure(unread)
        failure.message =
            "The current partition could not be read, and \(partition) stands in for it; name one by --partition: "
            + failure.message
        output.warn(failure)
    }

    enum Access { case reading, writing }

    /// Makes a store that is to be written this user's alone, and says so.
    func prepare(_ access: Access, _ output: Output) {
        if access == .writing { output.note(StoreExposure.narrow(url, files)) }
    }

    private func options(_ access: Access, checksItself: Bool = false) -> Store.Options {
        var options = Store.Options()
        options.isReadOnly = access == .reading
        options.comparesChecksums = !checksItself
        options.label = "the larder command"
        options.deviceTokens = nil
        options.silence()
        return options
    }
}
