import AsyncHTTPClient
import Larder

extension S3Transport {
    /// What is known of a body that has been sent.
    struct Sent: Sendable {
        var answer: S3Answer
        var crc32c: UInt32
    }

    /// S3 takes no smaller ones, but for the last.
    private static let smallestChunk = 8 << 10

    private var chunkSize: Int { max(Self.smallestChunk, options.chunkSize) }

    /// The form that bodies are sent in.
    private func payload(of body: ObjectBody, clock: ExchangeClock) throws(ObjectError) -> PayloadHash {
        switch options.payload {
        case .automatic: try endpoint.isSecure ? .unsignedTrailer : .signedTrailer
        case .unsignedTrailer: .unsignedTrailer
        case .signedTrailer: .signedTrailer
        case .signed: .sha256(try Checksums.sha256(of: body, chunkSize: chunkSize, clock: clock))
        case .unsigned: .unsigned
        }
    }

    /// Sends a body, and knows of what was answered that it is what was sent.
    func send(_ body: ObjectBody, _ request: S3Request, idle: Duration) async throws(ObjectError) -> Sent {
        guard body.size >= 0 else { throw ObjectError(.unusableRequest, "A body cannot have \(body.size) bytes.") }
        let clock = ExchangeClock(idle: idle)
        return try await clock.limiting { () async throws(ObjectError) -> Sent in
            let framing = BodyFraming(
                payload: try self.payload(of: body, clock: clock), size: body.size,
                chunkSize: min(self.chunkSize, max(Self.smallestChunk, body.turn ?? .max)))
            var request = request
            request.headers += framing.headers
            let sent = try await self.attempt(request, payload: framing.payload, clock: clock) {
                signed throws(S3Refusal) in
                try await self.send(body, framing, signed, clock: clock)
            }
            try self.verify(sent, of: body, clock: clock)
            return sent
        }
    }

    private func send(
        _ body: ObjectBody, _ framing: BodyFraming, _ signed: Signed, clock: ExchangeClock
    ) async throws(S3Refusal) -> Sent {
        let exchange = BodyExchange(client, largestAnswer: options.maximumAnswerSize, clock: clock)
        let writer = BodyFraming.Writer(
            framing, signature: signed.signature, seed: signed.seed, buffers: buffers.take())
        let (answer, produced) = await withTaskGroup(of: Result<UInt32, ObjectError>.self) { group in
            group.addTask {
                let result = await self.produce(body, framing, writer, into: exchange, clock: clock)
                if case .failure(let error) = result { exchange.fail(error) }
                return result
            }
            let answer: Result<S3Answer, any Error>
            do { answer = .success(try await exchange.run(signed.http, length: framing.length)) } catch {
                answer = .failure(error)
            }
            // Where the answer came before all was sent, the rest is of no use.
            group.cancelAll()
            return (answer, await group.next())
        }
        // The body's own failure is why the exchange failed, unless the storage had refused it by then.
        let whole: S3Answer
        do { whole = try answer.get() } catch { throw S3Refusal(ObjectError(ofClient: error)) }
        guard (200..<300).contains(whole.status) else {
            throw S3Refusal(answer: whole, wallClock: options.wallClock)
        }
        try whole.requireSuccess()
        guard case .success(let crc32c) = produced else {
            throw S3Refusal(whole.unusable("The storage said that it had the body before it could have it."))
        }
        return Sent(answer: whole, crc32c: crc32c)
    }

    /// Compares what the storage says that it has with what was sent.
    private func verify(_ sent: Sent, of body: ObjectBody, clock: ExchangeClock) throws(ObjectError) {
        let headers = sent.answer.headers
        let checksum = headers.first(name: BodyFraming.trailerName)
        var isSame = checksum.map { Checksums.crc32c($0) == sent.crc32c } ?? true
        // Some storages repeat the checksum that they were told, and have not looked; over TLS that does no harm. What
        // is encrypted with keys of a service's or of the caller's has an ETag that only looks like an MD5.
        let isSecure = try endpoint.isSecure
        if isSame, checksum == nil || !isSecure, !headers.isEncryptedByKey,
            let md5 = headers.first(name: "ETag").flatMap({ EntityTag($0).wholeMD5 })
        {
            isSame = try Checksums.md5(of: body, chunkSize: chunkSize, clock: clock) == md5
        }
        guard isSame else {
            throw ObjectError(
                .checksum, "The storage has other bytes than it was sent.", status: sent.answer.status,
                requestID: headers.requestID, hostID: headers.hostID)
        }
    }
}
