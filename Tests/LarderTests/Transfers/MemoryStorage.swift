import Crypto
import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Synchronization

/// A storage in memory, that does what S3 does and counts what it is asked.
final class MemoryStorage: ObjectTransport {
    enum Call: Sendable, Hashable {
        case put(String)
        case beginUpload(String)
        case putPart(Int)
        case parts, complete
        case abort(String)
        case uploads
        case head(String)
        case get(Range<Int64>)
    }

    typealias Hook = @Sendable (Call) async throws(ObjectError) -> Void

    struct Object: Sendable {
        var bytes: [UInt8]
        var etag: String
        var attributes: ObjectAttributes
    }

    struct Upload: Sendable {
        var location: ObjectLocation
        var attributes: ObjectAttributes
        var parts: [Int: [UInt8]] = [:]
    }

    struct State: Sendable {
        var objects: [ObjectLocation: Object] = [:]
        var uploads: [String: Upload] = [:]
        /// The uploads that it was asked to abort, and aborted.
        var aborted: [MultipartUpload] = []
        /// The region that each request for a list of uploads named.
        var listedRegions: [String?] = []
        var calls: [Call] = []
        /// How long each call might take when it came last, or be without a byte.
        var times: [Call: Duration] = [:]
        /// How many calls are under way that carry bytes, and the most there were.
        var busy = 0
        var mostBusy = 0
        /// How many calls wait until their callers have gone, and how many were carried out after that.
        var late = 0
        var landed = 0
        /// The version that it says all objects have.
        var version: String?
        /// The most bytes for which each sent body asks at a time.
        var turns: [Int?] = []
    }

    let limits: ObjectLimits
    let state = Mutex(State())
    /// Called before anything of a call is done; may throw.
    private let before = Mutex<Hook?>(nil)
    /// Called after a call was carried out, and before it is answered; may throw, as where an answer is lost.
    private let after = Mutex<Hook?>(nil)
    /// Whether it tells CRC-32C of objects and of parts that it lists.
    let tellsChecksums: Bool
    /// Whether objects are encrypted, so that their ETags tell nothing of their bytes.
    let isSealed: Bool

    /// The SHA-256 that it says all objects have; nil: it says none.
    let saidDigest = Mutex<[UInt8]?>(nil)
    /// The CRC-32C that it says of parts by their numbers, as it was told and has not looked; nil: as `tellsChecksums`.
    let saidChecksums = Mutex<[Int: UInt32]>([:])
    /// Sizes that it says of objects, in turn, before it says the true ones.
    let saidSizes = Mutex<[Int64]>([])
    /// So many calls to come that make an object are carried out only so long after their callers have gone.
    let lateness = Mutex((calls: Countdown(0), time: Duration.zero))
    /// A byte becomes another on its way in so many exchanges to come.
    let damages = Mutex(Countdown(0))

    init(
        partSize: Int64 = 1024, tellsChecksums: Bool = false, isSealed: Bool = false, maximumParts: Int = 100,
        largestPart: Int64 = 1 << 20, largestPut: Int64 = 1 << 30
    ) {
        limits = ObjectLimits(
            largestPut: largestPut, smallestPart: partSize, largestPart: largestPart, maximumParts: maximumParts,
            largestObject: 100 << 20)
        self.tellsChecksums = tellsChecksums
        self.isSealed = isSealed
    }

    var calls: [Call] { state.withLock { $0.calls } }
    func object(_ location: ObjectLocation) -> Object? { state.withLock { $0.objects[location] } }
    func keep(_ bytes: [UInt8], at location: ObjectLocation) {
        state.withLock { $0.objects[location] = Object(bytes: bytes, etag: Self.tag(bytes), attributes: .init()) }
    }

    func onCall(_ body: @escaping Hook) { before.withLock { $0 = body } }
    func onAnswer(_ body: @escaping Hook) { after.withLock { $0 = body } }

    func host(of location: ObjectLocation) -> String { location.bucket }

    // MARK: Exchanges

    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        state.withLock { $0.turns.append(body.turn) }
        return try await carrying(.put(location.key), within: idle) { () async throws(ObjectError) in
            let bytes = try await Self.read(body)
            try await self.perhapsLate { _ = self.store(bytes, Self.tag(bytes), attributes, at: location) }
            return self.store(bytes, Self.tag(bytes), attributes, at: location)
        }
    }

    func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload {
        try await call(.beginUpload(location.key), within: time) { () throws(ObjectError) in
            let id = UUID().uuidString
            self.state.withLock { $0.uploads[id] = Upload(location: location, attributes: attributes) }
            return MultipartUpload(location: location, id: id)
        }
    }

    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        state.withLock { $0.turns.append(body.turn) }
        return try await carrying(.putPart(number), within: idle) { () async throws(ObjectError) in
            let bytes = try await Self.read(body)
            try self.change(upload) { $0.parts[number] = bytes }
            return self.part(number, bytes)
        }
    }

    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] {
        try await call(.parts, within: time) { () throws(ObjectError) in
            try self.change(upload) { $0.parts }.sorted { $0.key < $1.key }.map { self.part($0.key, $0.value) }
        }
    }

    func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        try await call(.complete, within: time) { () async throws(ObjectError) in
            let there = try self.change(upload) { $0 }
            var bytes: [UInt8] = []
            var tags: [UInt8] = []
            for part in parts {
                guard let part = there.parts[part.number].map({ ($0, Self.tag($0) == part.etag) }), part.1 else {
                    throw ObjectError(.incomplete, "part \(part.number) is another")
                }
                bytes += part.0
                tags += Insecure.MD5.hash(data: part.0)
            }
            // What is aborted meanwhile is not put together.
            try await self.perhapsLate { self.state.withLock { $0.uploads[upload.id] = nil } }
            self.state.withLock { $0.uploads[upload.id] = nil }
            let tag = "\"\(hexadecimal(Insecure.MD5.hash(data: tags)))-\(parts.count)\""
            return self.store(bytes, tag, there.attributes, at: upload.location)
        }
    }

    func abortUpload(_ upload: MultipartUpload, within time: Duration) async throws(ObjectError) {
        try await call(.abort(upload.id), within: time) {
            self.state.withLock { state in
                state.uploads[upload.id] = nil
                state.aborted.append(upload)
            }
        }
    }

    func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload] {
        state.withLock { $0.listedRegions.append(region) }
        return try await call(.uploads, within: time) {
            self.state.withLock { $0.uploads }.filter { $0.value.location.key.hasPrefix(prefix) }
                .map { MultipartUpload(location: $0.value.location, id: $0.key) }
        }
    }

    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        try await call(.head(location.key), within: time) { () throws(ObjectError) in
            var object = try self.found(location).0
            if let size = self.saidSizes.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { object.size = size }
            return object
        }
    }

    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        try await carrying(.get(range), within: idle) { () async throws(ObjectError) in
            let (stored, whole) = try self.found(location)
            var bytes = whole
            if self.damages.withLock({ $0.take() }) { bytes[Int(range.lowerBound)] ^= 1 }
            guard stored.etag == etag else { throw ObjectError(.changed, "the object has other bytes") }
            for start in stride(from: range.lowerBound, to: range.upperBound, by: 1000) {
                let end = min(start + 1000, range.upperBound)
                do {
                    try await sink.pace(Int(end - start))
                    try bytes[Int(start)..<Int(end)].withUnsafeBytes { try sink.write(start, $0) }
                } catch { throw ObjectError(.local, "the sink failed", cause: error) }
            }
            return stored
        }
    }

    // MARK: Within

    private func call<Value>(
        _ call: Call, within time: Duration, _ body: () async throws(ObjectError) -> Value
    ) async throws(ObjectError) -> Value {
        if Task.isCancelled { throw ObjectError(.cancelled, "the task was cancelled") }
        try await before.withLock(\.self)?(call)
        state.withLock { state in
            state.calls.append(call)
            state.times[call] = time
        }
        let value = try await body()
        try await after.withLock(\.self)?(call)
        return value
    }

    private func carrying<Value>(
        _ call: Call, within time: Duration, _ body: () async throws(ObjectError) -> Value
    ) async throws(ObjectError) -> Value {
        state.withLock { state in
            state.busy += 1
            state.mostBusy = max(state.mostBusy, state.busy)
        }
        defer { state.withLock { $0.busy -= 1 } }
        return try await self.call(call, within: time, body)
    }

    /// Where this call is one of those that are late, it is not answered, and carried out after its caller has gone.
    private func perhapsLate(_ body: @escaping @Sendable () -> Void) async throws(ObjectError) {
        let (isLate, time) = lateness.withLock { ($0.calls.take(), $0.time) }
        guard isLate else { return }
        state.withLock { $0.late += 1 }
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(60)) }
        Task.detached {
            try? await Task.sleep(for: time)
            body()
            self.state.withLock { $0.landed += 1 }
        }
        throw ObjectError(.cancelled, "the caller has gone")
    }

    private static func read(_ body: ObjectBody) async throws(ObjectError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(body.size))
        do {
            for start in stride(from: 0, to: bytes.count, by: 1000) {
                let end = min(start + 1000, bytes.count)
                try await body.pace(end - start)
                try bytes.withUnsafeMutableBytes {
                    try body.read(Int64(start), UnsafeMutableRawBufferPointer(rebasing: $0[start..<end]))
                }
            }
        } catch { throw ObjectError(.local, "the body failed", cause: error) }
        return bytes
    }

    private func change<Value>(
        _ upload: MultipartUpload, _ body: (inout Upload) -> Value
    ) throws(ObjectError) -> Value {
        let value = state.withLock { state -> Value? in
            guard var found = state.uploads[upload.id] else { return nil }
            defer { state.uploads[upload.id] = found }
            return body(&found)
        }
        guard let value else { throw ObjectError(.noSuchUpload, "there is no such upload", status: 404) }
        return value
    }

    private func store(
        _ bytes: [UInt8], _ tag: String, _ attributes: ObjectAttributes, at location: ObjectLocation
    ) -> StoredObject {
        let version = state.withLock { state in
            state.objects[location] = Object(bytes: bytes, etag: tag, attributes: attributes)
            return state.version
        }
        return StoredObject(etag: tag, size: Int64(bytes.count), version: version)
    }

    private func found(_ location: ObjectLocation) throws(ObjectError) -> (StoredObject, [UInt8]) {
        guard let object = object(location) else {
            throw ObjectError(.notFound, "there is no \(location)", status: 404)
        }
        let crc = tellsChecksums ? CRC32C(of: object.bytes).value : nil
        let stored = StoredObject(
            etag: object.etag, etagIsDigest: !isSealed, size: Int64(object.bytes.count), crc32c: crc,
            sha256: saidDigest.withLock { $0 }, attributes: object.attributes)
        return (stored, object.bytes)
    }

    private func part(_ number: Int, _ bytes: [UInt8]) -> UploadedPart {
        UploadedPart(
            number: number, size: Int64(bytes.count), etag: Self.tag(bytes),
            crc32c: saidChecksums.withLock { $0[number] } ?? (tellsChecksums ? CRC32C(of: bytes).value : nil))
    }

    private static func tag(_ bytes: [UInt8]) -> String { "\"\(hexadecimal(Insecure.MD5.hash(data: bytes)))\"" }
}
