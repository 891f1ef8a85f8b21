import Foundation
import Larder
import LarderRecords
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderAWS
@testable import LarderHTTP

@Suite("What follows when AppSync refuses a connection, or a proof on it")
struct ConnectionEndTests {
    private func dialect(_ authorization: AppSyncAuthorization) throws -> AppSyncRealTime {
        AppSyncRealTime(
            try #require(URL(string: "https://127.0.0.1/graphql")), authorization, SubscriptionPacing(),
            wallClock: { Date() }, signing: SigningClock { Date() })
    }

    /// The error with which a connection ends.
    private func end(
        _ dialect: AppSyncRealTime, _ errorType: String, in payload: String = #"{"errors":[ERROR]}"#
    ) throws -> TransportError? {
        let said = payload.replacing("ERROR", with: #"{"errorType":"\#(errorType)"}"#)
        let text = #"{"type":"connection_error","payload":\#(said)}"#
        let message = try JSONMembers(Array(text.utf8))
        do throws(TransportError) {
            _ = try dialect.reaction(to: message)
            return nil
        } catch { return error }
    }

    @Test(
        "A refused proof waits for a sign-in where the connection had not opened, and a request AppSync rejects ends",
        arguments: [
            ("UnauthorizedException", false, TransportError.Code.notSignedIn),
            ("UnauthorizedException", true, .interrupted),
            ("ExpiredTokenException", false, .notSignedIn), ("UnrecognizedClientException", false, .notSignedIn),
            ("BadRequestException", false, .unusableRequest), ("BadRequestException", true, .unusableRequest),
            ("InternalFailure", false, .interrupted),
        ])
    func end(errorType: String, hasOpened: Bool, code: TransportError.Code) throws {
        let dialect = try dialect(.apiKey("da2-key"))
        if hasOpened { _ = try dialect.reaction(to: JSONMembers(Array(#"{"type":"connection_ack"}"#.utf8))) }
        #expect(try end(dialect, errorType)?.code == code)
    }

    @Test(
        "A connection that AppSync closes is opened anew, whatever reason its code gives",
        arguments: [1_000, 1_001, 1_008, 1_011, 4_401, nil] as [UInt16?])
    func closed(code: UInt16?) throws {
        let meaning = try dialect(.apiKey("da2-key")).meaning(of: WebSocketClosed(code: code, reason: "why"))
        #expect(meaning.code == .interrupted)
    }

    @Test(
        "AppSync may send a list of errors, one error alone, or one that is all it says",
        arguments: [#"{"errors":[ERROR]}"#, #"{"errors":ERROR}"#, "ERROR"])
    func shapes(payload: String) throws {
        let error = try end(try dialect(.apiKey("da2-key")), "BadRequestException", in: payload)
        #expect(error?.code == .unusableRequest)
    }

    private func start(_ dialect: AppSyncRealTime, _ id: String = "1") async throws {
        _ = try await dialect.messages(for: [.start(id: id, .appSync("subscription { renamed { id } }"))])
    }

    /// Lets the API refuse a start.
    ///
    /// - Returns: For each start that has failed, whether it is made again.
    @discardableResult
    private func refuse(
        _ dialect: AppSyncRealTime, _ id: String = "1", for errorType: String = "UnauthorizedException",
        in type: String = "error"
    ) throws -> [Bool] {
        let text = #"{"type":"\#(type)","id":"\#(id)","payload":{"errors":[{"errorType":"\#(errorType)"}]}}"#
        var answers: [Bool] = []
        for message in try dialect.reaction(to: JSONMembers(Array(text.utf8))).messages {
            if case .failed(_, _, let mayRecover) = message { answers.append(mayRecover) }
        }
        return answers
    }

    @Test("Credentials that AppSync refused for a start are named to their source, which gets others")
    func namesRefusedCredentials() async throws {
        let asked = Mutex<[String?]>([])
        let dialect = try dialect(
            .iam(region: "eu-west-1") { refused, _ in
                asked.withLock { $0.append(refused?.accessKeyID) }
                return AppSyncFixture.credentials
            })
        try await start(dialect)
        try refuse(dialect)
        try await start(dialect)
        #expect(asked.withLock { $0 } == [nil, AppSyncFixture.credentials.accessKeyID])
    }

    /// Expects that a refused start is not made again, and that the dialect asks its source for no other proof.
    private func expectNoOtherProof(
        sourceLocation: SourceLocation = #_sourceLocation, _ refuse: (AppSyncRealTime) throws -> [Bool]
    ) async throws {
        let refused = Mutex<[String?]>([])
        let dialect = try dialect(
            .lambda { token, _ in
                refused.withLock { $0.append(token) }
                return "token"
            })
        try await start(dialect)
        let answers = try refuse(dialect)
        #expect(answers == [false], sourceLocation: sourceLocation)
        try await start(dialect)
        #expect(refused.withLock { $0 } == [nil, nil], sourceLocation: sourceLocation)
    }

    @Test("A rule that forbids a subscription asks its source for no other proof, and makes no other start")
    func forbiddenStart() async throws {
        try await expectNoOtherProof { try refuse($0, for: "Unauthorized") }
    }

    /// A dialect whose proofs are `token 1`, `token 2` and so on.
    private func countingDialect() throws -> AppSyncRealTime {
        let count = Mutex(0)
        return try dialect(
            .lambda { _, _ in
                count.withLock {
                    $0 += 1
                    return "token \($0)"
                }
            })
    }

    @Test("A start is sent with the proof that the program gives at that time, and not with an earlier one")
    func proofOfEachStart() async throws {
        let dialect = try countingDialect()
        for number in 1...2 {
            let start = SubscriptionLine.Command.start(id: "\(number)", .appSync("subscription { renamed { id } }"))
            let message = try #require(try await dialect.messages(for: [start]).first)
            #expect(String(decoding: message, as: UTF8.self).contains("token \(number)"))
        }
    }

    @Test(
        "A start that AppSync refuses is made again with one other proof, and with a third only where one was taken",
        arguments: [
            (["error", "error"], [true, false]), (["error", "start_ack", "error"], [true, true]),
        ])
    func startsAgainOnce(types: [String], isMadeAgain: [Bool]) async throws {
        let dialect = try countingDialect()
        var answers: [Bool] = []
        for type in types {
            try await start(dialect)
            answers += try refuse(dialect, in: type)
        }
        #expect(answers == isMadeAgain)
    }

    @Test("A start has the variables of its subscription", arguments: [#"{"id":"7"}"#, "{}", ""])
    func variables(_ variables: String) async throws {
        let document = "subscription Renamed($id: ID) { renamed(id: $id) { id } }"
        let request = GraphQLRequest(
            kind: .subscription, operationName: "Renamed", document: document,
            documentHash: String(repeating: "0", count: 64), variables: Array(variables.utf8))
        let message = try #require(
            try await dialect(.apiKey("da2-key")).messages(for: [.start(id: "1", request)]).first)
        var data: String?
        if case .object(let members) = try Value(json: message), case .object(let payload)? = members["payload"],
            case .string(let text)? = payload["data"]
        {
            data = text
        }
        #expect(data == #"{"query":"\#(document)","variables":\#(variables.isEmpty ? "{}" : variables)}"#)
    }

    @Test("Each of several starts that AppSync refuses with the same proof is made again")
    func startsEachAgain() async throws {
        let dialect = try dialect(.lambda { refused, _ in refused == nil ? "old" : "new" })
        for id in ["1", "2"] { try await start(dialect, id) }
        let answers = try ["1", "2"].map { try refuse(dialect, $0) }
        #expect(answers == [[true], [true]])
    }

    @Test(
        "A start that AppSync refuses for its proof is made again, whatever AppSync has said of another start",
        arguments: [
            #"{"type":"start_ack","id":"1"}"#,
            #"{"type":"error","id":"1","payload":{"errors":[{"errorType":"BadRequestException"}]}}"#,
        ])
    func startsAgainBesideOther(said: String) async throws {
        let dialect = try dialect(.lambda { refused, _ in refused == nil ? "old" : "new" })
        for id in ["1", "2"] { try await start(dialect, id) }
        _ = try dialect.reaction(to: JSONMembers(Array(said.utf8)))
        let answers = try refuse(dialect, "2")
        #expect(answers == [true])
    }

    @Test(
        "A connection is to be replaced a minute before its token ends, or after nine tenths of a shorter life",
        arguments: [(1_000, 940.0), (100, 90)])
    func lifetime(seconds: Int, expected: Double) async throws {
        let now = Date(timeIntervalSince1970: 1_000_000)
        let claims = Data(#"{"exp":\#(1_000_000 + seconds)}"#.utf8).base64EncodedString().replacing("=", with: "")
        let lifetimes = try await lifetimes(.userPool { _, _ in "e30.\(claims).s" }, now)
        #expect(lifetimes == [.seconds(expected)])
    }

    @Test("A connection is to be replaced before a day is over, also where its token lasts for longer")
    func lifetimeOfLongToken() async throws {
        let now = Date(timeIntervalSince1970: 1_000_000)
        let claims = Data(#"{"exp":1300000}"#.utf8).base64EncodedString().replacing("=", with: "")
        let lifetimes = try await lifetimes(.openIDConnect { _, _ in "e30.\(claims).s" }, now)
        #expect(lifetimes.count == 1 && lifetimes.allSatisfy { $0 < .seconds(24 * 3_600) })
    }

    @Test("A connection whose token has ended by this clock, and which AppSync took, is not replaced at once")
    func lifetimeOfEndedToken() async throws {
        let now = Date(timeIntervalSince1970: 1_000_000)
        let claims = Data(#"{"exp":990000}"#.utf8).base64EncodedString().replacing("=", with: "")
        let lifetimes = try await lifetimes(.openIDConnect { _, _ in "e30.\(claims).s" }, now)
        #expect(lifetimes.count == 1 && lifetimes.allSatisfy { $0 > .seconds(12 * 3_600) })
    }

    @Test("A connection is to be replaced a minute before its credentials end")
    func lifetimeOfCredentials() async throws {
        let now = Date(timeIntervalSince1970: 1_000_000)
        var credentials = AppSyncFixture.credentials
        credentials.expires = now.addingTimeInterval(1_000)
        let lifetimes = try await lifetimes(.iam(region: "eu-west-1") { [credentials] _, _ in credentials }, now)
        #expect(lifetimes == [.seconds(940.0)])
    }

    /// After how long a connection that is opened with the authorization is to be replaced.
    private func lifetimes(_ authorization: AppSyncAuthorization, _ now: Date) async throws -> [Duration] {
        let dialect = AppSyncRealTime(
            try #require(URL(string: "https://127.0.0.1/graphql")), authorization, SubscriptionPacing(),
            wallClock: { now }, signing: SigningClock { now })
        _ = try await dialect.connection(by: .now + .seconds(60))
        let reaction = try dialect.reaction(to: JSONMembers(Array(#"{"type":"connection_ack"}"#.utf8)))
        return reaction.messages.compactMap { if case .expiring(let time) = $0 { time } else { nil } }
    }

    @Test("A token says when it ends also where its claims have the letters that Base64 writes otherwise in URLs")
    func claimsForURLs() async throws {
        let now = Date(timeIntervalSince1970: 1_000_000)
        let plain = Data(#"{"name":">>>???","exp":1001000}"#.utf8).base64EncodedString()
        #expect(plain.contains("+") && plain.contains("/"))
        let claims = plain.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        let lifetimes = try await lifetimes(.userPool { _, _ in "e30.\(claims).s" }, now)
        #expect(lifetimes == [.seconds(940.0)])
    }

    @Test("What AppSync says of a subscription that it has begun refuses no proof, and makes no other start")
    func refusedAfterStart() async throws {
        try await expectNoOtherProof { dialect in
            _ = try dialect.reaction(to: JSONMembers(Array(#"{"type":"start_ack","id":"1"}"#.utf8)))
            return try refuse(dialect)
        }
    }
}
