import Larder
import Testing

@testable import LarderHTTP

@Suite("What the codes mean with which a server closes a WebSocket")
struct CloseCodeTests {
    @Test(
        "A protocol error ends the subscriptions, a refused proof waits for a sign-in, and all else is tried again",
        arguments: [
            (4400, TransportError.Code.unusableRequest), (4406, .unusableRequest), (4409, .unusableRequest),
            (4429, .unusableRequest), (4401, .notSignedIn), (4403, .notSignedIn), (4408, .interrupted),
            (4500, .interrupted), (1000, .interrupted), (1011, .interrupted), (nil, .interrupted),
        ] as [(UInt16?, TransportError.Code)])
    func meaning(code: UInt16?, expected: TransportError.Code) {
        let dialect = GraphQLTransportWS(openedBy: .now) { nil }
        #expect(dialect.meaning(of: WebSocketClosed(code: code, reason: "why")).code == expected)
    }
}
