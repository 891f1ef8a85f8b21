import AsyncHTTPClient
import Larder
import NIOCore
import NIOPosix

extension S3Transport {
    /// What is known of a body that has been sent.
    struct Sent: Sendable {
        var answer: S3Answer
        var crc32c: UInt32
    }

    private var chunkSize: Int { max(8 << 10, options.chunkSize) }

    /// Whether bytes can go from a file to the socket. Over TLS they have to be encrypted, and the channels of Apple's
    /// Network framework do not know files.
    private var sendsFiles: Bool {
        get throws(ObjectError) { try !endpoint.isSecure && client.eventLoopGroup is MultiThreadedEventLoopGroup }
    }

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
                payload: try self.payload(of: body, clock: clock), size: body.size, chunkSize: self.chunkSize)
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
            // Where the answer came before all was sent, the rest is of no use to anybody.
            group.cancelAll()
            return (answer, await group.next())
        }
        // The body's own failure is why the exchange failed, unless the storage had refused it by then.
        let whole: S3Answer
        do { whole = try answer.get() } catch { throw S3Refusal(ObjectError(ofClient: error)) }
        guard (200..<300).contains(whole.status) else {
            throw S3Refusal(answer: whole, wallClock: options.wallClock)
        }
        guard case .success(let crc32c) = produced else {
            throw S3Refusal(whole.unusable("The storage said that it had the body before it could have it."))
        }
        return Sent(answer: whole, crc32c: crc32c)
    }

    /// Reads a body and gives it to the exchange.
    private func produce(
        _ body: ObjectBody, _ framing: BodyFraming, _ writer: BodyFraming.Writer, into exchange: BodyExchange,
        clock: ExchangeClock
    ) async -> Result<UInt32, ObjectError> {
        var writer = writer
        defer { buffers.put(writer.buffers) }
        do {
            let file = try sendsFiles ? body.file.map(SentFile.init) : nil
            do {
                try await produce(body, framing, &writer, file, into: exchange, clock: clock)
            } catch {
                await file?.close(client.eventLoopGroup)
                throw error
            }
            await file?.close(client.eventLoopGroup)
            return .success(writer.crc32c)
        } catch {
            return .failure(ObjectError(ofCaller: error, .local, "The body could not be read."))
        }
    }

    /// Reads each chunk while the one before is being sent.
    private func produce(
        _ body: ObjectBody, _ framing: BodyFraming, _ writer: inout BodyFraming.Writer, _ file: SentFile?,
        into exchange: BodyExchange, clock: ExchangeClock
    ) async throws {
        var offset: Int64 = 0
        var sending: Handover?
        // The length of a body in chunks goes by theirs.
        let isFree = file != nil && !framing.hasTrailer
        while offset < body.size {
            let count = Int(min(Int64(isFree ? regions.current : framing.chunkSize), body.size - offset))
            let begun = ContinuousClock.now
            try await clock.held { try await body.pace(count) }
            try Task.checkCancellation()
            var pieces: [IOData] = []
            if let file {
                let head = try writer.head(count) { try body.read(offset + Int64($0), $1) }
                if head.readableBytes > 0 { pieces.append(.byteBuffer(head)) }
                pieces.append(.fileRegion(file.region(offset..<(offset + Int64(count)))))
            } else {
                pieces.append(.byteBuffer(try writer.chunk(count) { try body.read(offset, $0) }))
            }
            offset += Int64(count)
            try await sending?.end(isFree ? regions : nil)
            let taken = exchange.send(pieces, isLast: offset == body.size && !framing.hasTrailer)
            sending = Handover(count: count, begun: begun, taken: taken)
        }
        try await sending?.end(isFree ? regions : nil)
        if framing.hasTrailer { try await exchange.send([.byteBuffer(writer.trailer())], isLast: true).get() }
    }

    /// Bytes that were given to the exchange.
    private struct Handover {
        let count: Int
        let begun: ContinuousClock.Instant
        let taken: EventLoopFuture<Void>

        /// Waits until the socket has taken them.
        func end(_ regions: RegionSize?) async throws {
            do {
                try await taken.get()
                regions?.learn(count, took: .now - begun)
            } catch {
                regions?.forget()
                throw error
            }
        }
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
