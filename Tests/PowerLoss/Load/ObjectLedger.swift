package import Larder
import LarderTestSupport
import Synchronization

/// A storage that no power cut reaches: it says what it has done when it has done it, and can be made again from that.
///
/// Whoever uploads to it sends the bytes that `TransferLoad` has for the key. With a seed, requests are lost now and
/// then, and answers.
package final class ObjectLedger: ObjectTransport {
    /// What a request has changed.
    package enum Effect: Sendable, Hashable {
        case begun(upload: String, key: String)
        case part(upload: String, number: Int)
        case completed(upload: String)
        case aborted(upload: String)
        /// What was sent is not what the file has there.
        case wrong(key: String)

        package var words: String {
            switch self {
            case .begun(let upload, let key): "begun \(upload) \(key)"
            case .part(let upload, let number): "part \(upload) \(number)"
            case .completed(let upload): "completed \(upload)"
            case .aborted(let upload): "aborted \(upload)"
            case .wrong(let key): "wrong \(key)"
            }
        }

        package init?(words: [String]) {
            guard words.count > 1 else { return nil }
            switch (words[0], words.count) {
            case ("begun", 3): self = .begun(upload: words[1], key: words[2])
            case ("part", 3):
                guard let number = Int(words[2]) else { return nil }
                self = .part(upload: words[1], number: number)
            case ("completed", 2): self = .completed(upload: words[1])
            case ("aborted", 2): self = .aborted(upload: words[1])
            case ("wrong", 2): self = .wrong(key: words[1])
            default: return nil
            }
        }
    }

    private struct State {
        var uploads: [String: (key: String, parts: Set<Int>)] = [:]
        var objects: Set<String> = []
        var wrong: [String] = []
        var begun = 0
        /// Parts that were told, and those of them that were sent again.
        var listed: Set<[String]> = []
        var sentAgain: [String] = []
        /// Bytes of each object that were sent out.
        var received: [String: Int64] = [:]
        var random: SeededNumbers?

        mutating func carryOut(_ effect: Effect) {
            switch effect {
            case .begun(let upload, let key):
                uploads[upload] = (key, [])
                begun += 1
            case .part(let upload, let number): uploads[upload]?.parts.insert(number)
            case .completed(let upload): uploads.removeValue(forKey: upload).map { _ = objects.insert($0.key) }
            case .aborted(let upload): uploads[upload] = nil
            case .wrong(let key): wrong.append(key)
            }
        }
    }

    package let limits = ObjectLimits(
        largestPut: 0, smallestPart: TransferLoad.partSize, largestPart: 1 << 20, maximumParts: 100,
        largestObject: 1 << 30)
    private let state: Mutex<State>
    private let took: @Sendable (Effect) -> Void

    /// - Parameters:
    ///   - earlier: What it has done so far.
    ///   - took: Told of each effect, before anybody is answered.
    package init(
        after earlier: [Effect] = [], losingBySeed seed: UInt64? = nil,
        took: @escaping @Sendable (Effect) -> Void = { _ in }
    ) {
        var state = State(random: seed.map { SeededNumbers(seed: $0) })
        for effect in earlier { state.carryOut(effect) }
        self.state = Mutex(state)
        self.took = took
    }

    /// Keys of what was uploaded.
    package var objects: Set<String> { state.withLock { $0.objects } }
    /// Keys of which other bytes were sent than their files have.
    package var wrong: [String] { state.withLock { $0.wrong } }
    /// Keys of uploads that were neither completed nor aborted.
    package var unfinished: [String] { state.withLock { $0.uploads.values.map(\.key) } }
    /// Parts that were sent again after they had been listed.
    package var sentAgain: [String] { state.withLock { $0.sentAgain } }
    /// How many bytes of an object were sent out.
    package func received(of key: String) -> Int64 { state.withLock { $0.received[key] ?? 0 } }

    package func host(of location: ObjectLocation) -> String { location.bucket }

    private func exchange<Answer>(
        _ body: (inout State) throws(ObjectError) -> (Answer, Effect?)
    ) throws(ObjectError) -> Answer {
        if Task.isCancelled { throw ObjectError(.cancelled, "the task was cancelled") }
        let outcome = state.withLock { state -> Result<(Answer, Bool), ObjectError> in
            let chance = (state.random?.next() ?? .max) % 12
            if chance == 0 { return .failure(ObjectError(.interrupted, "the request was lost")) }
            do throws(ObjectError) {
                let (answer, effect) = try body(&state)
                if let effect {
                    state.carryOut(effect)
                    took(effect)
                }
                return .success((answer, chance == 1))
            } catch { return .failure(error) }
        }
        let (answer, isLost) = try outcome.get()
        if isLost { throw ObjectError(.interrupted, "the answer was lost") }
        return answer
    }

    // MARK: Uploads

    package func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        throw ObjectError(.tooLarge, "everything goes in parts")
    }

    package func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload {
        try exchange { state throws(ObjectError) in
            let upload = MultipartUpload(location: location, id: "u\(state.begun)")
            return (upload, .begun(upload: upload.id, key: location.key))
        }
    }

    package func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        var bytes = [UInt8](repeating: 0, count: Int(body.size))
        do {
            try await body.pace(bytes.count)
            try bytes.withUnsafeMutableBytes { try body.read(0, $0) }
        } catch { throw ObjectError(.local, "the body failed", cause: error) }
        return try exchange { state throws(ObjectError) in
            guard let found = state.uploads[upload.id] else { throw Self.forgotten }
            if state.listed.contains([upload.id, "\(number)"]) { state.sentAgain.append("\(found.key) \(number)") }
            let isRight = bytes == Array(TransferLoad.part(number, of: found.key))
            return (
                Self.part(number, of: found.key),
                isRight ? .part(upload: upload.id, number: number) : .wrong(key: found.key)
            )
        }
    }

    package func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] {
        try exchange { state throws(ObjectError) in
            guard let found = state.uploads[upload.id] else { throw Self.forgotten }
            for number in found.parts { state.listed.insert([upload.id, "\(number)"]) }
            return (found.parts.sorted().map { Self.part($0, of: found.key) }, nil)
        }
    }

    package func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        try exchange { state throws(ObjectError) in
            guard let found = state.uploads[upload.id] else { throw Self.forgotten }
            let count = TransferLoad.partCount(of: found.key)
            guard parts.map(\.number) == Array(1...count), found.parts.count == count else {
                throw ObjectError(.incomplete, "a part is missing")
            }
            return (Self.object(found.key), .completed(upload: upload.id))
        }
    }

    package func abortUpload(
        _ upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) {
        try exchange { _ throws(ObjectError) in ((), .aborted(upload: upload.id)) }
    }

    package func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload] {
        try exchange { state throws(ObjectError) in
            let uploads = state.uploads.filter { $0.value.key.hasPrefix(prefix) }.map { id, upload in
                MultipartUpload(location: .init(bucket: bucket, key: upload.key, region: region), id: id)
            }
            return (uploads, nil)
        }
    }

    // MARK: Objects

    package func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        try exchange { state throws(ObjectError) in
            guard TransferLoad.isThere(location.key) || state.objects.contains(location.key) else {
                throw ObjectError(.notFound, "there is no such object", status: 404)
            }
            return (Self.object(location.key), nil)
        }
    }

    package func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        let bytes = TransferLoad.bytes(of: location.key)
        do {
            try await sink.pace(range.count)
            // In two, so that the power may be cut between them.
            let middle = (range.lowerBound + range.upperBound) / 2
            for piece in [range.lowerBound..<middle, middle..<range.upperBound] {
                try bytes[Int(piece.lowerBound)..<Int(piece.upperBound)].withUnsafeBytes {
                    try sink.write(piece.lowerBound, $0)
                }
            }
        } catch { throw ObjectError(.local, "the sink failed", cause: error) }
        return try exchange { state throws(ObjectError) in
            state.received[location.key, default: 0] += Int64(range.count)
            return (Self.object(location.key), nil)
        }
    }

    private static var forgotten: ObjectError { ObjectError(.noSuchUpload, "there is no such upload", status: 404) }

    private static func object(_ key: String) -> StoredObject {
        let bytes = TransferLoad.bytes(of: key)
        return StoredObject(
            etag: "\"\(key)-\(TransferLoad.partCount(of: key))\"", etagIsDigest: false, size: Int64(bytes.count),
            crc32c: CRC32C(of: bytes).value)
    }

    private static func part(_ number: Int, of key: String) -> UploadedPart {
        let bytes = TransferLoad.part(number, of: key)
        return UploadedPart(
            number: number, size: Int64(bytes.count), etag: "\"\(number)\"", crc32c: CRC32C(of: bytes).value)
    }
}
