import Larder

/// Notes which parts are sent, and which of them the storage has listed before.
struct RecordingTransport: ObjectTransport {
    private let storage: any ObjectTransport
    private let ledger: Ledger

    init(_ storage: any ObjectTransport, _ ledger: Ledger) {
        self.storage = storage
        self.ledger = ledger
    }

    var limits: ObjectLimits {
        var limits = storage.limits
        // As the storage of the tests allows.
        limits.smallestPart = 1 << 10
        return limits
    }

    func host(of location: ObjectLocation) -> String { storage.host(of: location) }

    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        try await storage.put(body, to: location, attributes, idle: idle)
    }

    func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload {
        try await storage.beginUpload(to: location, attributes, within: time)
    }

    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        ledger.note("send", upload.id, String(number))
        return try await storage.putPart(number, body, of: upload, idle: idle)
    }

    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] {
        let deadline = SuspendingClock.now + time
        let parts = try await storage.parts(of: upload, within: .until(deadline))
        for part in parts { ledger.note("listed", upload.id, String(part.number), part.etag) }
        return parts
    }

    func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        try await storage.completeUpload(upload, parts, within: time)
    }

    func abortUpload(_ upload: MultipartUpload, within time: Duration) async throws(ObjectError) {
        try await storage.abortUpload(upload, within: time)
    }

    func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload] {
        try await storage.uploads(in: bucket, region: region, prefix: prefix, within: time)
    }

    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        try await storage.object(at: location, within: time)
    }

    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        ledger.note("get", location.key, String(range.lowerBound))
        return try await storage.get(range, of: location, etag: etag, into: sink, idle: idle)
    }
}
