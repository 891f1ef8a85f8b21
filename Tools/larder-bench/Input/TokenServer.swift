import Foundation
import Larder
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A user pool and an API on the loopback interface, as far as the rows need them: it gives new tokens for any refresh
/// token, after a while, and answers every other request at once.
final class TokenServer: Sendable {
    static let pool = BackendEnvironment.UserPool(
        id: "us-east-1_AbC123xyz", clientID: "client", region: "us-east-1")

    let url: URL
    private let state: State
    private let listener: any Channel
    private let group: MultiThreadedEventLoopGroup

    /// What it has counted, and how far away it is.
    fileprivate final class State: Sendable {
        let refreshes = Atomic<Int>(0)
        let delay = Mutex(Duration.zero)
    }

    /// How many refreshes it was asked for.
    var refreshes: Int { state.refreshes.load(ordering: .relaxed) }

    /// How long it takes for the answer to a refresh, as a server that is far away.
    var delay: Duration {
        get { state.delay.withLock { $0 } }
        set { state.delay.withLock { $0 = newValue } }
    }

    private init(url: URL, state: State, listener: any Channel, group: MultiThreadedEventLoopGroup) {
        (self.url, self.state, self.listener, self.group) = (url, state, listener, group)
    }

    /// Runs `body` with a server on a free port.
    static func run<Result>(_ body: (TokenServer) async throws -> Result) async throws -> Result {
        let (state, group) = (State(), MultiThreadedEventLoopGroup(numberOfThreads: 1))
        let listener = try await ServerBootstrap(group: group)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(state))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        guard let port = listener.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)/") else {
            throw BenchFailure("the server has no port")
        }
        let server = TokenServer(url: url, state: state, listener: listener, group: group)
        do {
            let result = try await body(server)
            try await server.stop()
            return result
        } catch {
            try? await server.stop()
            throw error
        }
    }

    private func stop() async throws {
        try await listener.close()
        try await group.shutdownGracefully()
    }

    /// Tokens of the pool's user, unsigned; each number has its own.
    static func tokens(_ number: Int) -> Credentials.UserPoolTokens {
        Credentials.UserPoolTokens(
            idToken: token("id", number), accessToken: token("access", number), refreshToken: "refresh-\(number)",
            expires: Date(timeIntervalSinceNow: 3_600))
    }

    private static func token(_ use: String, _ number: Int) -> String {
        let client = use == "id" ? "aud" : "client_id"
        let claims = """
            {"iss":"https://cognito-idp.us-east-1.amazonaws.com/\(pool.id)","token_use":"\(use)","sub":"ada",\
            "\(client)":"\(pool.clientID)","iat":1000,"exp":4600,"jti":"\(number)"}
            """
        let text = Data(claims.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        return "e30.\(text.replacing("=", with: "")).e30"
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let state: State
        private var isRefresh = false

        init(_ state: State) { self.state = state }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): isRefresh = head.headers.contains(name: "x-amz-target")
            case .body: break
            case .end: isRefresh ? refresh(context) : send(#"{"data":{"name":"Vega"}}"#, context)
            }
        }

        private func refresh(_ context: ChannelHandlerContext) {
            let tokens = TokenServer.tokens(state.refreshes.add(1, ordering: .relaxed).newValue)
            let answer = """
                {"AuthenticationResult":{"IdToken":"\(tokens.idToken)","AccessToken":"\(tokens.accessToken)",\
                "RefreshToken":"\(tokens.refreshToken ?? "")","ExpiresIn":3600}}
                """
            let delay = state.delay.withLock { $0 }
            guard delay > .zero else { return send(answer, context) }
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: TimeAmount(delay)) { bound.value.0.send(answer, bound.value.1) }
        }

        private func send(_ text: String, _ context: ChannelHandlerContext) {
            let body = ByteBuffer(string: text)
            let headers: HTTPHeaders = [
                "Content-Type": "application/json", "Content-Length": String(body.readableBytes),
            ]
            context.write(
                wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .ok, headers: headers))),
                promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
