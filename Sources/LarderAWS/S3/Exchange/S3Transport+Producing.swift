import Larder
import NIOCore
import NIOPosix

extension S3Transport {
    /// Whether bytes can go from a file to the socket. Over TLS they have to be encrypted, and the channels of Apple's
    /// Network framework do not know files.
    private var sendsFiles: Bool {
        get throws(ObjectError) { try !endpoint.isSecure && client.eventLoopGroup is MultiThreadedEventLoopGroup }
    }

    /// Reads a body and gives it to the exchange.
    ///
    /// - Returns: Its checksum.
    func produce(
        _ body: ObjectBody, _ framing: BodyFraming, _ writer: BodyFraming.Writer, into exchange: BodyExchange,
        clock: ExchangeClock
    ) async -> Result<UInt32, ObjectError> {
        var writer = writer
        defer { buffers.put(writer.buffers) }
        do {
            let file = try sendsFiles ? body.file.map(SentFile.init) : nil
            let watch = file?.watch(body.size, for: exchange, on: client.eventLoopGroup.any())
            defer { watch?.cancel() }
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
        let sizes = file == nil || framing.hasTrailer ? nil : pieceSize
        while offset < body.size {
            let turn = sizes.map { min($0.current, body.turn ?? .max) } ?? framing.chunkSize
            let count = Int(min(Int64(turn), body.size - offset))
            let begun = SuspendingClock.now
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
            try await sending?.end(sizes)
            let taken = exchange.send(pieces, isLast: offset == body.size && !framing.hasTrailer)
            sending = Handover(count: count, begun: begun, taken: taken)
        }
        try await sending?.end(sizes)
        if framing.hasTrailer { try await exchange.send([.byteBuffer(writer.trailer())], isLast: true).get() }
    }

    /// Bytes that were given to the exchange.
    private struct Handover {
        let count: Int
        let begun: SuspendingClock.Instant
        let taken: EventLoopFuture<Void>

        /// Waits until the socket has taken them.
        func end(_ sizes: PieceSize?) async throws {
            do {
                try await taken.get()
                sizes?.learn(count, took: .now - begun)
            } catch {
                sizes?.forget()
                throw error
            }
        }
    }
}
