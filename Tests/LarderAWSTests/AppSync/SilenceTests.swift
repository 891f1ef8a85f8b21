import Foundation
import Larder
import LarderHTTP
import LarderRecords
import Testing

@testable import LarderAWS

@Suite("What AppSync says of its connection, and where a request goes")
struct SilenceTests {
    @Test(
        "A connection may be silent for as long as AppSync says, from a second to an hour; else for five minutes",
        arguments: [
            (#"{"payload":{"connectionTimeoutMs":45000}}"#, 45.0), (#"{"connectionTimeoutMs":45000}"#, 45),
            ("{}", 300), (#"{"payload":null}"#, 300), (#"{"payload":{"connectionTimeoutMs":0}}"#, 300),
            (#"{"payload":{"connectionTimeoutMs":-5}}"#, 300), (#"{"payload":{"connectionTimeoutMs":"long"}}"#, 300),
            (#"{"payload":{"connectionTimeoutMs":1}}"#, 1),
            (#"{"payload":{"connectionTimeoutMs":9223372036854775807}}"#, 3_600),
        ])
    func silence(message: String, seconds: Double) throws {
        let endpoint = try #require(URL(string: "https://127.0.0.1/graphql"))
        let dialect = AppSyncRealTime(
            endpoint, .apiKey("da2-key"), SubscriptionPacing(), wallClock: { Date() }, signing: SigningClock { Date() })
        var text = message
        text.replace("{", with: #"{"type":"connection_ack""# + (message == "{}" ? "" : ","), maxReplacements: 1)
        let reaction = try dialect.reaction(to: JSONMembers(Array(text.utf8)))
        #expect(reaction.silence == .seconds(seconds))
    }

    @Test("A keep-alive of AppSync says that the server is there")
    func keepAlive() throws {
        let endpoint = try #require(URL(string: "https://127.0.0.1/graphql"))
        let dialect = AppSyncRealTime(
            endpoint, .apiKey("da2-key"), SubscriptionPacing(), wallClock: { Date() }, signing: SigningClock { Date() })
        let reaction = try dialect.reaction(to: JSONMembers(Array(#"{"type":"ka"}"#.utf8)))
        #expect(reaction.messages.contains { if case .alive = $0 { true } else { false } })
    }

    @Test("A connection is to be replaced before AppSync ends it, which it does after a day")
    func lifetime() throws {
        let endpoint = try #require(URL(string: "https://127.0.0.1/graphql"))
        let dialect = AppSyncRealTime(
            endpoint, .apiKey("da2-key"), SubscriptionPacing(), wallClock: { Date() }, signing: SigningClock { Date() })
        let reaction = try dialect.reaction(to: JSONMembers(Array(#"{"type":"connection_ack"}"#.utf8)))
        let lifetimes = reaction.messages.compactMap { if case .expiring(let time) = $0 { time } else { nil } }
        #expect(lifetimes.count == 1)
        #expect(lifetimes.allSatisfy { $0 > .seconds(23 * 3_600) && $0 < .seconds(24 * 3_600) })
    }

    @Test("A handshake carries the proof in a header, and not in the URL")
    func proofOfHandshake() async throws {
        let dialect = AppSyncRealTime(
            try #require(URL(string: "https://127.0.0.1/graphql")), .lambda { _, _ in "token" }, SubscriptionPacing(),
            wallClock: { Date() }, signing: SigningClock { Date() })
        let connection = try await dialect.connection(by: .now + .seconds(60))
        #expect(connection.url.absoluteString == "https://127.0.0.1/graphql/realtime")
        #expect(connection.subprotocols.last?.hasPrefix("header-") == true)
    }

    @Test("The proof of a handshake or a start names the API's own host, and not the host of the socket")
    func hostOfProof() async throws {
        let host = "abc.appsync-api.eu-west-1.amazonaws.com"
        let dialect = AppSyncRealTime(
            try #require(URL(string: "https://\(host)/graphql")), .apiKey("da2-key"), SubscriptionPacing(),
            wallClock: { Date() }, signing: SigningClock { Date() })
        let connection = try await dialect.connection(by: .now + .seconds(60))
        #expect(connection.url.host() == "abc.appsync-realtime-api.eu-west-1.amazonaws.com")
        var encoded = try #require(connection.subprotocols.last).replacing("header-", with: "")
        encoded = encoded.replacing("-", with: "+").replacing("_", with: "/")
        encoded += String(repeating: "=", count: (4 - encoded.count % 4) % 4)
        let proof = try #require(Data(base64Encoded: encoded))
        #expect(try JSONDecoder().decode([String: String].self, from: proof)["host"] == host)
        let start = SubscriptionLine.Command.start(id: "1", .appSync("subscription { renamed { id } }"))
        let message = try #require(try await dialect.messages(for: [start]).first)
        #expect(String(decoding: message, as: UTF8.self).contains(#""host":"\#(host)""#))
    }

    @Test(
        "A start that fails for want of room, or because AppSync failed, is made again; one that is refused is not",
        arguments: [
            ("MaxSubscriptionsReachedError", true), ("MaxSubscriptionsReachedException", true),
            ("LimitExceededError", true), ("InternalFailure", true), ("BadRequestException", false),
            ("Unauthorized", false), ("OutOfStock", false),
        ])
    func failedStart(errorType: String, isMadeAgain: Bool) throws {
        let endpoint = try #require(URL(string: "https://127.0.0.1/graphql"))
        let dialect = AppSyncRealTime(
            endpoint, .apiKey("da2-key"), SubscriptionPacing(), wallClock: { Date() }, signing: SigningClock { Date() })
        let text = #"{"type":"error","id":"1","payload":{"errors":[{"errorType":"\#(errorType)"}]}}"#
        let reaction = try dialect.reaction(to: JSONMembers(Array(text.utf8)))
        guard case .failed("1", _, let mayRecover)? = reaction.messages.first else {
            Issue.record("\(reaction.messages)")
            return
        }
        #expect(mayRecover == isMadeAgain)
    }

    @Test(
        "A request names the port of its host where it is not the scheme's own",
        arguments: [
            ("https://a.example/x", "a.example"), ("https://a.example:443/x", "a.example"),
            ("http://a.example:80/", "a.example"), ("http://a.example:443/", "a.example:443"),
            ("https://a.example:8443/", "a.example:8443"), ("HTTPS://a.example:443/", "a.example"),
            ("http://[::1]:9000/", "[::1]:9000"),
        ])
    func host(url: String, host: String) throws { #expect(try #require(URL(string: url)).hostOnTheWire == host) }

    @Test(
        "The proof of a handshake has only letters that a sub-protocol's name may have",
        arguments: ["a", "ab", "abc", ">>>???~~~"])
    func lettersOfProof(token: String) async throws {
        let dialect = AppSyncRealTime(
            try #require(URL(string: "https://127.0.0.1/graphql")), .lambda { _, _ in token }, SubscriptionPacing(),
            wallClock: { Date() }, signing: SigningClock { Date() })
        let connection = try await dialect.connection(by: .now + .seconds(60))
        let proof = try #require(connection.subprotocols.last)
        #expect(proof.wholeMatch(of: /header-[A-Za-z0-9_-]+/) != nil, "\(proof)")
    }
}
