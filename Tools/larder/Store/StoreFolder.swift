import Foundation
import Larder
import LarderCommandLine
import LarderRecords

/// The folder that `--store` names.
struct StoreFolder: Sendable {
    let url: URL
    /// Which of its partitions is meant.
    let partition: String
    /// Whether the user named the partition.
    private let isChosen: Bool

    init(url: URL, partition: String, isChosen: Bool = false) throws(Failure) {
        self.url = url
        self.partition = partition
        self.isChosen = isChosen
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), !isFolder.boolValue {
            throw Failure(usage: "the store \(url.path) is no folder")
        }
    }

    /// What is being worked on, for people.
    var heading: String {
        "store \(url.path)" + (partition == Store.unnamedPartition ? "" : ", partition \(partition)")
    }

    /// Whether there is a record cache, in whatever state.
    var isStore: Bool {
        let cache = Store.cacheFolder(of: url, partition: partition).path
        let generations = (try? FileManager.default.contentsOfDirectory(atPath: cache)) ?? []
        return generations.contains { Int($0) != nil }
    }

    func requireStore() throws(Failure) {
        guard !isStore else { return }
        // What may not be looked into only looks as if nothing were there.
        if access(Store.cacheFolder(of: url, partition: partition).path, R_OK | X_OK) != 0, errno == EACCES {
            throw Failure(
                RecordError(
                    .notWritable,
                    "the store \(url.path) may not be read; give this user access to the folder and its files"))
        }
        guard FileManager.default.fileExists(atPath: url.path) else {
            throw Failure(.noStore, .failure, "there is no store at \(url.path)")
        }
        // A store whose partition has no cache yet knows as much as one with an empty cache.
        if hasQueue {
            throw Failure(
                .init(rawValue: LarderError.Code.miss.rawValue), .miss,
                "The partition \(partition) has no cache: nothing was stored in it yet; ingest or fetch something first",
                details: [("missing", .array([.array([])]))])
        }
        throw Failure(.noStore, .failure, "\(url.path) holds no store; ingest or fetch something into it first")
    }

    /// Refuses a folder that holds something else: a store is made in a new or empty one.
    func requireRoomForStore() throws(Failure) {
        guard !isStore else { return }
        guard StoreContents.areAll(of: url) else {
            throw Failure(
                .notAStore, .refused,
                "\(url.path) holds something else than a store; name a new folder, or an empty one")
        }
    }

    /// The bytes of the store's data files.
    var byteCount: Int {
        guard
            let walk = FileManager.default.enumerator(
                at: Store.cacheFolder(of: url, partition: partition),
                includingPropertiesForKeys: [.fileSizeKey, .isRegularFileKey])
        else { return 0 }
        var total = 0
        for case let file as URL in walk where file.lastPathComponent == "data.mdb" {
            total += (try? file.resourceValues(forKeys: [.fileSizeKey]).fileSize) ?? 0
        }
        return total
    }

    // MARK: Opening

    /// Runs `body` with the cache alone, and closes it.
    func withCache<Result>(
        _ access: Access, verifies: Bool = false, _ output: Output, _ body: (RecordCache) async throws -> Result
    ) async throws -> Result {
        try requireStore()
        output.heading(heading)
        prepare(access, output)
        let cache = try Store.openCache(
            at: url, partition: partition, options: options(access, verifies: verifies))
        do {
            let result = try await body(cache)
            try cache.close()
            return result
        } catch {
            // What failed first is what is told.
            try? cache.close()
            throw error
        }
    }

    /// Runs `body` with the store's partition, and closes the store.
    func withPartition<Result>(
        _ access: Access, schema: [String], transport: (any GraphQLTransport)? = nil, _ output: Output,
        _ body: (Partition) async throws -> Result
    ) async throws -> Result {
        if access == .reading { try requireStore() } else { try requireRoomForStore() }
        output.heading(heading)
        prepare(access, output)
        let store = try Store.open(at: url, schemaText: schema, options: options(access))
        do {
            let result = try await body(
                isChosen ? try store.partition(named: partition, transport) : try store.partition(transport: transport))
            try store.close()
            return result
        } catch {
            try? store.close()
            throw error
        }
    }

    enum Access { case reading, writing }

    /// Makes a store that is to be written this user's alone, and says so.
    func prepare(_ access: Access, _ output: Output) {
        if access == .writing { output.note(StoreExposure.narrow(url)) }
    }

    private func options(_ access: Access, verifies: Bool = false) -> Store.Options {
        var options = Store.Options()
        options.isReadOnly = access == .reading
        options.verifiesAlways = verifies
        options.label = "the larder command"
        options.silence()
        return options
    }
}
