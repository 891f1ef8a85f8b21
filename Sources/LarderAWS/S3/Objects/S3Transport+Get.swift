import AsyncHTTPClient
public import Larder
import NIOCore

extension S3Transport {
    public func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        let deadline = SuspendingClock.now + time
        var request = S3Request(.HEAD, bucket: location.bucket, key: location.key, region: location.region)
        request.headers = [("x-amz-checksum-mode", "ENABLED")]
        let object: StoredObject
        do throws(ObjectError) { object = try await describe(request, deadline) } catch {
            // The answer to a HEAD has no body, and so no name of what is wrong: whether credentials have ended or were
            // never good, whether key or bucket is missing. A GET is refused for the same reason, with one.
            guard error.serverCode == nil, let status = error.status, [400, 403, 404].contains(status) else {
                throw error
            }
            _ = try await hasBytes(request, deadline)
            // It is refused no more, as with new credentials.
            object = try await describe(request, deadline)
        }
        // Some storages say so for a moment of an object of parts: an empty file would take the place of what is there.
        guard object.size == 0, try await hasBytes(request, deadline) else { return object }
        throw ObjectError(.wrongLength, "The storage says that \(location) has no bytes, and sends some.")
    }

    /// Asks for the first byte of an object.
    ///
    /// - Parameter head: The request for what is known of it.
    private func hasBytes(
        _ head: S3Request, _ deadline: SuspendingClock.Instant
    ) async throws(ObjectError) -> Bool {
        var request = head
        request.method = .GET
        request.headers.append(("range", "bytes=0-0"))
        let clock = ExchangeClock(deadline: deadline)
        do throws(ObjectError) {
            return try await clock.limiting { [request] () async throws(ObjectError) -> Bool in
                try await self.attempt(request, clock: clock) { signed throws(S3Refusal) in
                    try await self.hasBody(try await self.success(signed, clock: clock))
                }
            }
        } catch {
            guard error.status == 416 else { throw error }
            return false
        }
    }

    private func hasBody(_ response: HTTPClientResponse) async throws(S3Refusal) -> Bool {
        do {
            for try await chunk in response.body where chunk.readableBytes > 0 { return true }
            return false
        } catch {
            throw S3Refusal(ObjectError(ofClient: error))
        }
    }

    /// Sends a request, and waits for the head of an answer that is a success.
    private func success(_ signed: Signed, clock: ExchangeClock) async throws(S3Refusal) -> HTTPClientResponse {
        let response = try await execute(signed.http)
        guard (200..<300).contains(Int(response.status.code)) else {
            _ = try await answer(response, clock: clock)
            throw S3Refusal(.exchangeCancelled)
        }
        clock.moved()
        return response
    }

    private func describe(
        _ request: S3Request, _ deadline: SuspendingClock.Instant
    ) async throws(ObjectError) -> StoredObject {
        try await ask(request, deadline: deadline) { answer throws(S3Refusal) in
            try answer.headers.object(size: answer.headers.first(name: "Content-Length").flatMap { Int64($0) })
        }
    }

    public func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject {
        guard range.lowerBound >= 0, !range.isEmpty else {
            throw ObjectError(.unusableRequest, "\(range) is no range of an object's bytes.")
        }
        var request = S3Request(.GET, bucket: location.bucket, key: location.key, region: location.region)
        request.headers = [
            ("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"), ("x-amz-checksum-mode", "ENABLED"),
        ]
        // A weak ETag matches none (RFC 9110, section 13.1.1). That of the answer is compared in any case.
        if !EntityTag(etag).isWeak { request.headers.append(("if-match", etag)) }
        let clock = ExchangeClock(idle: idle)
        return try await clock.limiting { [request] () async throws(ObjectError) -> StoredObject in
            try await self.attempt(request, clock: clock) { signed throws(S3Refusal) in
                let response = try await self.success(signed, clock: clock)
                let answered = try RangeAnswer(response, range: range, etag: etag)
                try await self.receive(response, answered, into: sink, clock: clock)
                return answered.object
            }
        }
    }

    private func receive(
        _ response: HTTPClientResponse, _ answered: RangeAnswer, into sink: ObjectSink, clock: ExchangeClock
    ) async throws(S3Refusal) {
        var offset = answered.range.lowerBound
        var checksum = CRC32C()
        do {
            for try await chunk in response.body {
                clock.moved()
                let count = chunk.readableBytes
                guard Int64(count) <= answered.range.upperBound - offset else {
                    throw answered.error(.wrongLength, "The storage sends more bytes than it was asked for.")
                }
                do {
                    try await clock.held { try await sink.pace(count) }
                    try chunk.withUnsafeReadableBytes { bytes in
                        if answered.wholeChecksum != nil { checksum.update(bytes) }
                        try sink.write(offset, bytes)
                    }
                } catch {
                    throw ObjectError(ofCaller: error, .local, "What arrived could not be written.")
                }
                offset += Int64(count)
            }
            try Task.checkCancellation()
        } catch {
            throw S3Refusal(ObjectError(ofClient: error))
        }
        guard offset == answered.range.upperBound else {
            throw S3Refusal(answered.error(.wrongLength, "The storage sent fewer bytes than it said."))
        }
        if let expected = answered.wholeChecksum, expected != checksum.value {
            throw S3Refusal(answered.error(.checksum, "The bytes that arrived are not the storage's."))
        }
    }
}
