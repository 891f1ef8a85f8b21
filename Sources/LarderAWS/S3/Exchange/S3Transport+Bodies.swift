import AsyncHTTPClient
import Larder
import NIOCore

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
        let pipe = ChunkPipe(client.eventLoopGroup)
        var http = signed.http
        http.body = .stream(pipe, length: .known(framing.length))
        let writer = BodyFraming.Writer(
            framing, signature: signed.signature, seed: signed.seed, buffers: buffers.take())
        let (answer, produced) = await withTaskGroup(of: Result<UInt32, ObjectError>.self) { group in
            group.addTask {
                let result = await self.produce(body, framing, writer, into: pipe, clock: clock)
                pipe.end(result.map { _ in })
                return result
            }
            let answer: Result<S3Answer, S3Refusal>
            do throws(S3Refusal) {
                answer = .success(try await self.answer(try await self.execute(http), clock: clock))
            } catch {
                answer = .failure(error)
            }
            // When the client has the last chunk, the task that made it is about to end.
            if pipe.isWhole { return (answer, await group.next()) }
            // The answer came before all was sent. The rest is of no use to anybody.
            pipe.abandon()
            group.cancelAll()
            return (answer, nil)
        }
        // The body's own failure is why the exchange failed, unless the storage had refused it by then.
        if case .failure(let refusal) = answer, refusal.error.status != nil { throw refusal }
        if let failure = pipe.failure { throw S3Refusal(failure) }
        let whole = try answer.get()
        guard case .success(let crc32c) = produced else {
            throw S3Refusal(
                ObjectError(
                    .unusableAnswer, "The storage said that it had the body before it could have it.",
                    status: whole.status, requestID: whole.headers.requestID, hostID: whole.headers.hostID))
        }
        return Sent(answer: whole, crc32c: crc32c)
    }

    /// Reads a body and gives it to the pipe, chunk by chunk.
    private func produce(
        _ body: ObjectBody, _ framing: BodyFraming, _ writer: BodyFraming.Writer, into pipe: ChunkPipe,
        clock: ExchangeClock
    ) async -> Result<UInt32, ObjectError> {
        var (writer, offset) = (writer, Int64(0))
        defer { buffers.put(writer.buffers) }
        do {
            while offset < body.size {
                let count = Int(min(Int64(framing.chunkSize), body.size - offset))
                try await clock.held { try await body.pace(count) }
                try Task.checkCancellation()
                let isLast = offset + Int64(count) == body.size
                let chunk = try writer.chunk(count, isLast: isLast) { try body.read(offset, $0) }
                guard await pipe.write(chunk, isLast: isLast) else { return .failure(.exchangeCancelled) }
                clock.moved()
                offset += Int64(count)
            }
            if body.size == 0, framing.length > 0 {
                guard await pipe.write(writer.trailer(), isLast: true) else { return .failure(.exchangeCancelled) }
            }
        } catch {
            return .failure(ObjectError(ofCaller: error, .local, "The body could not be read."))
        }
        return .success(writer.crc32c)
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
