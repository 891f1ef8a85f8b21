import Foundation
import Larder
import LarderFiles
import Synchronization

/// Takes transfers over and carries them when a test says so, to or from a storage in memory. It outlives runners and
/// stores.
final class ScriptedBackground: BackgroundTransport {
    private struct Upload {
        var file: URL
        var location: ObjectLocation
        /// Of a download.
        var etag: String?
        var attributes = ObjectAttributes()
        var crc32c: UInt32?
        var end: Result<StoredObject, ObjectError>?
    }

    private struct State {
        var uploads: [UUID: Upload] = [:]
        var handedOver: [UUID] = []
        var ended: [UUID] = []
        var takenTwice: [UUID] = []
        var outcomeCalls = 0
        var failingEnds = 0
    }

    private let storage: MemoryStorage
    private let state = Mutex(State())

    init(_ storage: MemoryStorage) { self.storage = storage }

    /// A runner of the same storage that hands its transfers over.
    func runner(_ app: Partition) -> TransferRunner {
        var options = TransferRunner.Options()
        options.background = self
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
        return TransferRunner(app, storage: storage, options: options)
    }

    /// The uploads that were handed over, each time.
    var handedOver: [UUID] { state.withLock { $0.handedOver } }
    /// The uploads that were ended by a runner, each time.
    var ended: [UUID] { state.withLock { $0.ended } }
    /// The transfers that were handed over while they were known.
    var takenTwice: [UUID] { state.withLock { $0.takenTwice } }
    /// How many calls of `outcome` were made.
    var outcomeCalls: Int { state.withLock { $0.outcomeCalls } }
    var uploads: Set<UUID> { state.withLock { Set($0.uploads.keys) } }

    /// What was handed over with an upload's file.
    func given(_ id: UUID) -> (attributes: ObjectAttributes, crc32c: UInt32?)? {
        state.withLock { $0.uploads[id].map { (attributes: $0.attributes, crc32c: $0.crc32c) } }
    }

    /// Sends a file, or what a test has in its place.
    func send(_ id: UUID, as bytes: [UInt8]? = nil) throws {
        guard let upload = state.withLock({ $0.uploads[id] }) else { return }
        let sent = if let bytes { bytes } else { Array(try Data(contentsOf: upload.file)) }
        storage.keep(sent, at: upload.location)
        let etag = storage.object(upload.location)?.etag ?? ""
        state.withLock { $0.uploads[id]?.end = .success(StoredObject(etag: etag)) }
    }

    /// Receives an object, or what a test has in its place; no file where that is nil. It has the ETag that was asked
    /// for where the test says no other.
    func receive(_ id: UUID, as bytes: [UInt8]?, etag: String? = nil) throws {
        guard let download = state.withLock({ $0.uploads[id] }), let asked = download.etag else { return }
        if let bytes { try Data(bytes).write(to: download.file, options: .atomic) }
        state.withLock { $0.uploads[id]?.end = .success(StoredObject(etag: etag ?? asked)) }
    }

    func fail(_ id: UUID, _ code: ObjectError.Code) {
        state.withLock { $0.uploads[id]?.end = .failure(ObjectError(code, "as the test says")) }
    }

    /// Has so many calls of `end` fail.
    func failEnds(_ count: Int) { state.withLock { $0.failingEnds = count } }

    func forget(_ id: UUID) { state.withLock { _ = $0.uploads.removeValue(forKey: id) } }

    func known() async throws(ObjectError) -> Set<UUID> { uploads }

    func upload(
        _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
    ) async throws(ObjectError) {
        state.withLock { state in
            if state.uploads[id] != nil { state.takenTwice.append(id) }
            state.uploads[id] = Upload(file: file, location: location, attributes: attributes, crc32c: crc32c)
            state.handedOver.append(id)
        }
    }

    func download(
        _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
    ) async throws(ObjectError) {
        state.withLock { state in
            if state.uploads[id] != nil { state.takenTwice.append(id) }
            state.uploads[id] = Upload(file: file, location: location, etag: etag)
            state.handedOver.append(id)
        }
    }

    func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
        state.withLock { $0.outcomeCalls += 1 }
        while true {
            guard let upload = state.withLock({ $0.uploads[id] }) else { return nil }
            if let end = upload.end { return try end.get() }
            do { try await Task.sleep(for: .milliseconds(1)) } catch {
                throw ObjectError(.cancelled, "the wait was cancelled")
            }
        }
    }

    func end(_ id: UUID) async throws(ObjectError) {
        let isFailing = state.withLock { state in
            guard state.failingEnds == 0 else {
                state.failingEnds -= 1
                return true
            }
            state.uploads[id] = nil
            state.ended.append(id)
            return false
        }
        if isFailing { throw ObjectError(.unreachable, "as the test says") }
    }
}
