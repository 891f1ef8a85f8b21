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
        var end: Result<StoredObject, ObjectError>?
    }

    private struct State {
        var uploads: [UUID: Upload] = [:]
        var handedOver: [UUID] = []
        var ended: [UUID] = []
    }

    private let storage: MemoryStorage
    private let state = Mutex(State())

    init(_ storage: MemoryStorage) { self.storage = storage }

    /// The uploads that were handed over, each time.
    var handedOver: [UUID] { state.withLock { $0.handedOver } }
    /// The uploads that were ended by a runner, each time.
    var ended: [UUID] { state.withLock { $0.ended } }
    var uploads: Set<UUID> { state.withLock { Set($0.uploads.keys) } }

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

    func forget(_ id: UUID) { state.withLock { _ = $0.uploads.removeValue(forKey: id) } }

    func known() async throws(ObjectError) -> Set<UUID> { uploads }

    func upload(
        _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
    ) async throws(ObjectError) {
        state.withLock { state in
            state.uploads[id] = Upload(file: file, location: location)
            state.handedOver.append(id)
        }
    }

    func download(
        _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
    ) async throws(ObjectError) {
        state.withLock { state in
            state.uploads[id] = Upload(file: file, location: location, etag: etag)
            state.handedOver.append(id)
        }
    }

    func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
        while true {
            guard let upload = state.withLock({ $0.uploads[id] }) else { return nil }
            if let end = upload.end { return try end.get() }
            do { try await Task.sleep(for: .milliseconds(1)) } catch {
                throw ObjectError(.cancelled, "the wait was cancelled")
            }
        }
    }

    func end(_ id: UUID) async throws(ObjectError) {
        state.withLock { state in
            state.uploads[id] = nil
            state.ended.append(id)
        }
    }
}
