import Foundation
import Larder
import LarderTestSupport

/// A folder by which a program hands transfers over to another process, and learns what became of them:
///
///     jobs/ID      what is to be carried; it stays until the program ends the transfer
///     ended/ID     how that ended
///     objects/     the storage
///     ledger       a line for each time that the other process has sent or received a file
struct OutsideFolder: Sendable {
    struct Job: Codable {
        var file: URL
        var key: String
        /// Of an upload.
        var crc32c: UInt32?
        /// Of a download.
        var etag: String?
    }

    struct End: Codable {
        var etag: String?
        var size: Int64?
        var crc32c: UInt32?
        var failure: String?
    }

    let folder: URL

    init(_ folder: URL) throws {
        self.folder = folder
        for name in ["jobs", "ended", "objects"] {
            try FileManager.default.createDirectory(
                at: folder.appending(path: name), withIntermediateDirectories: true)
        }
    }

    func job(_ id: UUID) -> URL { folder.appending(path: "jobs/\(id)") }
    func end(of id: UUID) -> URL { folder.appending(path: "ended/\(id)") }
    func object(_ key: String) -> URL { folder.appending(path: "objects/\(key)") }

    var jobs: [UUID] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "jobs").path)
                .compactMap(UUID.init(uuidString:))
        }
    }

    /// Nil where there is no such file.
    func read<Value: Decodable>(_ file: URL) throws -> Value? {
        guard let data = FileManager.default.contents(atPath: file.path) else { return nil }
        return try JSONDecoder().decode(Value.self, from: data)
    }

    func remove(_ file: URL) throws {
        do { try FileManager.default.removeItem(at: file) } catch CocoaError.fileNoSuchFile {}
    }

    /// CRC-32C of a file.
    static func checksum(_ data: Data) -> UInt32 {
        var crc = CRC32C()
        data.withUnsafeBytes { crc.update($0) }
        return crc.value
    }
}

/// What the program sees of the other process.
extension OutsideFolder: BackgroundTransport {
    func known() async throws(ObjectError) -> Set<UUID> { try using { Set(try jobs) } }

    func upload(
        _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
    ) async throws(ObjectError) {
        try using {
            try remove(end(of: id))
            let job = Job(file: file, key: location.key, crc32c: crc32c)
            try JSONEncoder().encode(job).write(to: self.job(id), options: .atomic)
        }
    }

    func download(
        _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
    ) async throws(ObjectError) {
        try using {
            try remove(end(of: id))
            let job = Job(file: file, key: location.key, etag: etag)
            try JSONEncoder().encode(job).write(to: self.job(id), options: .atomic)
        }
    }

    func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
        while true {
            let isKnown = try using { FileManager.default.fileExists(atPath: job(id).path) }
            if let end: End = try using({ try read(end(of: id)) }) {
                guard let etag = end.etag else { throw ObjectError(.interrupted, end.failure ?? "it failed") }
                return StoredObject(etag: etag, etagIsDigest: false, size: end.size, crc32c: end.crc32c)
            }
            guard isKnown else { return nil }
            do { try await Task.sleep(for: .milliseconds(2)) } catch {
                throw ObjectError(.cancelled, "the wait was cancelled")
            }
        }
    }

    func end(_ id: UUID) async throws(ObjectError) {
        try using {
            // The job first: while it is there and has no end, the other process carries it out.
            try remove(job(id))
            try remove(end(of: id))
        }
    }

    private func using<Value>(_ body: () throws -> Value) throws(ObjectError) -> Value {
        do { return try body() } catch { throw ObjectError(.notPrepared, "the folder cannot be used", cause: error) }
    }
}
