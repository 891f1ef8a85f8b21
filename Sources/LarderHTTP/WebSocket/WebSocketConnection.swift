import AsyncHTTPClient
package import Foundation
package import Larder
import LarderFiles
package import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
import NIOWebSocket

/// A WebSocket for texts. `run` opens it, runs a body with it, and closes it when the body returns or throws.
package struct WebSocketConnection: Sendable {
    /// `ws`, `wss`, `http` or `https`.
    package var url: URL
    /// Of the handshake.
    package var headers: [GraphQLRequest.Header] = []
    /// The first is the protocol, which the server must choose. AppSync takes the proof of who asks from the second.
    package var subprotocols: [String]
    /// Nil for the system's authorities.
    package var tls: TLSConfiguration?
    /// In bytes; a longer message ends the connection.
    package var maximumMessageSize = 16 << 20
    /// After how long without a byte the connection is given up.
    package var silence = Duration.seconds(60)
    /// Whether a silent server is asked to say something.
    package var pings = true
    /// Told the field `Date` of the answer to the handshake.
    package var heard: @Sendable (_ date: String?) -> Void = { _ in }

    package init(url: URL, subprotocols: [String]) {
        self.url = url
        self.subprotocols = subprotocols
    }

    /// What comes from the server, for one reader.
    package struct Messages {
        var iterator: NIOAsyncChannelInboundStream<[WebSocketMessage]>.AsyncIterator

        /// The next messages, which came together; nil where the task was cancelled.
        ///
        /// - Throws: Why the connection has ended.
        package mutating func next() async throws -> [WebSocketMessage]? { try await iterator.next() }
    }

    /// The way to the server.
    package struct Writer: Sendable {
        let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
        let channel: any Channel

        /// Sends texts, as far as there is room with one call of the system. Returns when there is room for others.
        ///
        /// - Returns: False where the connection has ended, of which the reader of the texts is told the reason.
        package func write(_ texts: [[UInt8]]) async -> Bool {
            do { try await outbound.write(contentsOf: texts.map { ByteBuffer(bytes: $0) }) } catch { return false }
            return true
        }

        /// Ends the connection. The reader of the texts is told the error.
        package func end(_ error: any Error, sayingGoodbye: Bool = false) async {
            // A connection that has ended already has told its reader why.
            guard channel.isActive else { return }
            let event = WebSocketEnd(error: error, saysGoodbye: sayingGoodbye)
            try? await channel.triggerUserOutboundEvent(event).get()
        }

        /// Ends the connection then, unless that is cancelled. The reader of the texts is told the error.
        package func end(_ error: TransportError, at deadline: SuspendingClock.Instant) -> Scheduled<Void> {
            let left = max(.zero, deadline - .now)
            return channel.eventLoop.scheduleTask(in: .nanoseconds(left.nanoseconds)) { [channel] in
                channel.triggerUserOutboundEvent(WebSocketEnd(error: error), promise: nil)
            }
        }

        /// After how long without a byte the connection is given up from now on.
        package func setSilence(_ limit: Duration) async throws {
            try await channel.triggerUserOutboundEvent(WebSocketSilence(limit: limit)).get()
        }
    }

    private typealias AsyncChannel = NIOAsyncChannel<[WebSocketMessage], ByteBuffer>

    private enum Upgrade: Sendable {
        case opened(AsyncChannel, subprotocol: String?)
        case refused(EventLoopFuture<HTTPResponseHead>)
    }

    /// Opens a socket, and does with it what `body` does.
    ///
    /// - Parameters:
    ///   - group: Whose threads carry it, where they can.
    ///   - deadline: For the opening.
    /// - Throws: A `TransportError`; a `WebSocketClosed` where the server has closed the socket; what `body` throws.
    package func run(
        on group: any EventLoopGroup, openedBy deadline: SuspendingClock.Instant,
        _ body: (inout Messages, Writer) async throws -> Void
    ) async throws {
        let opening = SocketOpening()
        let opened: AsyncChannel
        do {
            opened = try await withTaskCancellationHandler {
                try await open(on: group, deadline) { opening.begin($0) }
            } onCancel: {
                opening.cancel()
            }
        } catch {
            if Task.isCancelled { throw TransportError(.cancelled, "The task was cancelled.", phase: .beforeSending) }

            guard .now < deadline else { throw TransportError.deadlinePassed.before }
            throw error as? TransportError ?? TransportError(ofClient: error)
        }
        try await opened.executeThenClose { inbound, outbound in
            var messages = Messages(iterator: inbound.makeAsyncIterator())
            try await body(&messages, Writer(outbound: outbound, channel: opened.channel))
        }
    }

    // MARK: Opening

    /// - Parameter made: Called with the channel before it is connected.
    private func open(
        on group: any EventLoopGroup, _ deadline: SuspendingClock.Instant,
        _ made: @escaping @Sendable (any Channel) -> Void
    ) async throws -> AsyncChannel {
        guard let host = url.host(percentEncoded: false), !host.isEmpty, !url.namesUser,
            let scheme = url.scheme?.lowercased(), ["ws", "wss", "http", "https"].contains(scheme)
        else {
            throw TransportError(
                .unusableRequest,
                "A socket is opened to a URL with a host, without a user, and with the scheme wss or ws.")
        }
        let isSecure = ["wss", "https"].contains(scheme)
        let head = try requestHead(host, isSecure)
        let security = isSecure ? try NIOSSLContext(configuration: tls ?? .makeClientConfiguration()) : nil
        let left = deadline - .now
        guard left > .zero else { throw TransportError.deadlinePassed.before }
        // Rounded up, so that the deadline has passed where NIO ends the opening.
        let limit = TimeAmount.milliseconds(Int64(left / .milliseconds(1)) + 1)
        // A group of another kind, as Network.framework's, has no threads for this bootstrap.
        let bootstrap =
            ClientBootstrap(validatingGroup: group)
            ?? ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        let upgrade = try await bootstrap.connectTimeout(limit)
            .connect(host: host, port: url.port ?? (isSecure ? 443 : 80)) { channel in
                made(channel)
                return channel.eventLoop.makeCompletedFuture {
                    if let security {
                        let name = (try? SocketAddress(ipAddress: host, port: 0)) == nil ? host : nil
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: security, serverHostname: name))
                    }
                    return try self.negotiate(channel, head, limit)
                }
            }
        switch try await upgrade.get() {
        case .opened(let channel, let subprotocol):
            guard subprotocol == subprotocols.first else {
                try await channel.channel.close()
                throw TransportError(
                    .unusableAnswer,
                    "The server speaks \(subprotocol ?? "no protocol of ours") on its socket, and not "
                        + "\(subprotocols.first ?? ""); is the URL that of its subscriptions?", phase: .beforeSending)
            }
            return channel
        case .refused(let head):
            let head = try await head.get()
            heard(head.headers.first(name: "Date"))
            throw refusal(head)
        }
    }

    private func requestHead(_ host: String, _ isSecure: Bool) throws(TransportError) -> HTTPRequestHead {
        var given = RequestHeaders()
        try given.replace(with: headers)
        var fields = HTTPHeaders()
        let port = url.port.map { $0 == (isSecure ? 443 : 80) ? "" : ":\($0)" } ?? ""
        fields.add(name: "Host", value: (host.contains(":") ? "[\(host)]" : host) + port)
        if !subprotocols.isEmpty {
            fields.add(name: "Sec-WebSocket-Protocol", value: subprotocols.joined(separator: ", "))
        }
        for header in given.fields where header.name.lowercased() != "host" {
            fields.add(name: header.name, value: header.value)
        }
        var target = url.path(percentEncoded: true)
        if target.isEmpty { target = "/" }
        if let query = url.query(percentEncoded: true) { target += "?" + query }
        let size = fields.reduce(target.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard size <= HTTPClientRequest.maximumHeadSize else {
            throw TransportError(
                .unusableRequest,
                "The head of the handshake has \(size) bytes, and \(HTTPClientRequest.maximumHeadSize) are allowed.")
        }
        return HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: fields)
    }

    private func negotiate(
        _ channel: any Channel, _ head: HTTPRequestHead, _ limit: TimeAmount
    ) throws -> EventLoopFuture<Upgrade> {
        let (maximumMessageSize, silence, pings, heard) = (maximumMessageSize, silence, pings, heard)
        // NIO's own handling of errors would close the channel before its reader is told of them.
        let upgrader = NIOTypedWebSocketClientUpgrader<Upgrade>(
            maxFrameSize: maximumMessageSize, enableAutomaticErrorHandling: false
        ) { channel, response in
            heard(response.headers.first(name: "Date"))
            return channel.eventLoop.makeCompletedFuture {
                let operations = channel.pipeline.syncOperations
                try operations.addHandlers([
                    // Fragments may be as small as they like; there are not more than a message has room for.
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 65_536,
                        maxAccumulatedFrameSize: maximumMessageSize),
                    WebSocketText(silence: silence, pings: pings),
                ])
                // No more is read while two reads of the socket wait for the reader.
                let reading = NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark(
                    lowWatermark: 1, highWatermark: 2)
                return .opened(
                    try AsyncChannel(
                        wrappingChannelSynchronously: channel, configuration: .init(backPressureStrategy: reading)),
                    subprotocol: response.headers.first(name: "sec-websocket-protocol"))
            }
        }
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
                upgradeRequestHead: head, upgraders: [upgrader],
                notUpgradingCompletionHandler: { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let promise = channel.eventLoop.makePromise(of: HTTPResponseHead.self)
                        try channel.pipeline.syncOperations.addHandler(RefusalReader(promise))
                        return .refused(promise.futureResult)
                    }
                }))
        // A server may send its first messages together with the answer to the handshake.
        configuration.leftOverBytesStrategy = .forwardBytes
        let result = try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: configuration)
        let timeout = channel.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
        result.whenComplete { _ in timeout.cancel() }
        return result
    }

    private func refusal(_ head: HTTPResponseHead) -> TransportError {
        let status = Int(head.status.code)
        guard ![401, 403].contains(status) else {
            return TransportError(
                .notSignedIn, "The server did not take the proof of who asks (\(status)).", status: status)
        }
        return TransportError(
            .status, "The server did not open a socket (\(status)); is the URL that of its subscriptions?",
            phase: .beforeSending, status: status,
            retryAfter: head.headers.first(name: "Retry-After").flatMap {
                RetryAfter.duration($0, serverDate: head.headers.first(name: "Date"), wallClock: Date.init)
            })
    }
}

/// A socket that is being opened, and may be given up meanwhile.
private final class SocketOpening: Sendable {
    private let state = Locked<(channel: (any Channel)?, isCancelled: Bool)>((nil, false))

    func begin(_ channel: any Channel) {
        let isCancelled = state.withLock { state in
            state.channel = channel
            return state.isCancelled
        }
        if isCancelled { channel.close(promise: nil) }
    }

    func cancel() {
        let channel = state.withLock { state in
            state.isCancelled = true
            return state.channel
        }
        channel?.close(promise: nil)
    }
}

/// Reads the head of an answer that opens no socket, and closes the connection.
private final class RefusalReader: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let promise: EventLoopPromise<HTTPResponseHead>

    init(_ promise: EventLoopPromise<HTTPResponseHead>) { self.promise = promise }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return }
        promise.succeed(head)
        context.close(promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        promise.fail(ChannelError.eof)
        context.fireChannelInactive()
    }
}
