import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOHTTP1
import Testing

/// An identity pool that answers what it should not, to guests and to users, through a session.
@Suite("Identity pools that lie", .timeLimit(.minutes(10)))
struct LyingIdentityPoolTests {
    /// Who asks.
    enum Holder: CaseIterable {
        /// Who has no credentials yet.
        case newGuest
        /// Whose credentials a service has refused.
        case guest
        case user
    }

    /// An answer to one operation, and what it is to be.
    struct Lie: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var operation = "GetCredentialsForIdentity"
        var reply: Reply
        /// The error's code; nil where the answer is taken.
        var code: String?

        init(_ name: String, _ body: String, in operation: String = "GetCredentialsForIdentity", _ code: String?) {
            self.init(name, Reply(body: Array(body.utf8)), in: operation, code)
        }

        init(_ name: String, _ reply: Reply, in operation: String = "GetCredentialsForIdentity", _ code: String?) {
            testDescription = "\(name), \(operation)"
            (self.operation, self.reply, self.code) = (operation, reply, code)
        }
    }

    private static func keys(_ expiration: String? = nil, id: String = "i", key: String = "NEW") -> String {
        let end = expiration.map { #", "Expiration": \#($0)"# } ?? ""
        return """
            {"IdentityId": "\(id)",
             "Credentials": {"AccessKeyId": "\(key)", "SecretKey": "S", "SessionToken": "T"\(end)}}
            """
    }

    private static let unusable = "identity.unusable"

    static let lies: [Lie] = {
        let huge = String(repeating: "x", count: 2 << 20)
        let error = #"{"__type": "InternalErrorException", "message": "m"}"#
        var lies: [Lie] = []
        for operation in ["GetId", "GetCredentialsForIdentity"] {
            lies += [
                Lie("an error with 200", error, in: operation, "identity.unreachable"),
                Lie(
                    "a refusal with 200", #"{"__type": "NotAuthorizedException", "message": "no"}"#, in: operation,
                    "identity.federatedRefused"),
                Lie(
                    "throttled",
                    Reply(status: .badRequest, body: Array(#"{"__type": "TooManyRequestsException"}"#.utf8)),
                    in: operation, "identity.throttled"),
                Lie("nothing", "", in: operation, unusable), Lie("no members", "{}", in: operation, unusable),
                Lie("a page", "<html>", in: operation, unusable), Lie("a list", "[]", in: operation, unusable),
                Lie("null", "null", in: operation, unusable),
                Lie("numbers for texts", #"{"IdentityId": 1, "Credentials": 2}"#, in: operation, unusable),
                Lie("half an answer", String(keys("4e9").prefix(60)), in: operation, unusable),
                Lie("huge", #"{"IdentityId": "\#(huge)", "Credentials": null}"#, in: operation, unusable),
                Lie(
                    "cut", Reply(headers: ["Content-Length": "500"], body: Array("{".utf8), ending: .cut),
                    in: operation,
                    "identity.unreachable"),
                Lie("a redirect", Reply(status: .found, headers: ["Location": "/"]), in: operation, unusable),
            ]
        }
        lies += [
            Lie("no credentials", #"{"IdentityId": "i"}"#, unusable),
            Lie("no key", #"{"IdentityId": "i", "Credentials": {"SecretKey": "S"}}"#, unusable),
            Lie("no secret", #"{"IdentityId": "i", "Credentials": {"AccessKeyId": "A"}}"#, unusable),
            Lie("no end", keys(), nil), Lie("an end far away", keys("1e300"), nil),
            Lie("an end that is no number", keys("NaN"), unusable), Lie("a text NaN", keys(#""NaN""#), unusable),
            Lie("an end that no number holds", keys("1e400"), unusable),
            Lie("a date as a text", keys(#""2030-01-01T00:00:00Z""#), unusable),
            Lie("a list for an end", keys("[1]"), unusable), Lie("null for an end", keys("null"), nil),
            Lie("another identity", keys("4e9", id: "other"), nil),
        ]
        return lies
    }()

    private func withSession(
        of holder: Holder, _ body: (CognitoScript, Session, Credentials.CloudCredentials?) async throws -> Void
    ) async throws {
        try await CognitoScript.run(["GetId": #"{"IdentityId": "i"}"#]) { script in
            try await withNewStore(of: script.provider()) { store, _ in
                let session = try store.partition(of: script.environment()).session
                script.set("GetCredentialsForIdentity", Self.keys("4e9", key: "OLD"))
                var old: Credentials.CloudCredentials?
                switch holder {
                case .newGuest: break
                case .guest:
                    _ = try await session.continueAsGuest(within: ample)
                    old = try await session.cloudCredentials(within: ample)
                case .user:
                    var tokens = try CognitoScript.tokens()
                    tokens.expires = Date().addingTimeInterval(3_600)
                    try await session.signIn(Credentials(userPool: tokens), within: ample)
                }
                try await body(script, session, old)
            }
        }
    }

    /// Asks as a program does.
    private func ask(
        _ session: Session, _ holder: Holder, _ old: Credentials.CloudCredentials?, within time: Duration = ample
    ) async throws -> Credentials.CloudCredentials {
        if holder == .newGuest { _ = try await session.continueAsGuest(within: time) }
        return try await session.cloudCredentials(within: time, refused: old)
    }

    @Test(
        "Each lie is told by its code in both languages, and the next answer is taken", arguments: lies, Holder.allCases
    )
    func told(lie: Lie, holder: Holder) async throws {
        try await withSession(of: holder) { script, session, old in
            // A guest whose identity is known asks for none.
            if holder == .guest, lie.operation == "GetId" { return }
            script.set(lie.operation, lie.reply)
            let before = session.state
            if let code = lie.code {
                let error = try #require(
                    await #expect(throws: LarderError.self) { _ = try await ask(session, holder, old) })
                try expectTold(error, code)
            } else {
                let keys = try await ask(session, holder, old)
                #expect(keys.accessKeyID == "NEW")
            }
            // A guest whom the pool refuses is none any more.
            let isGone = holder == .guest && lie.code == "identity.federatedRefused"
            if lie.code != nil, !isGone { #expect(session.state == before) }
            script.set("GetId", #"{"IdentityId": "i"}"#)
            script.set("GetCredentialsForIdentity", Self.keys("4e9", key: "NEXT"))
            let next = try await ask(session, isGone ? .newGuest : holder, lie.code == nil ? nil : old)
            #expect(next.accessKeyID == (lie.code == nil && holder != .newGuest ? "NEW" : "NEXT"))
            #expect(session.state == (holder == .user ? .signedIn : .guest))
        }
    }

    private func expectTold(_ error: LarderError, _ code: String) throws {
        #expect(error.code.rawValue == code, "\(error)")
        let texts = ["en", "ja"].map { ErrorTexts(languages: [$0]).text(for: error) }
        #expect(texts.allSatisfy { !$0.isEmpty } && texts[0] != texts[1], "\(texts)")
        #expect("\(error)".utf8.count < 4_000)
    }

    @Test(
        "Credentials that have ended when they come are told, and asked for no more than twice",
        arguments: Holder.allCases)
    func ended(holder: Holder) async throws {
        try await withSession(of: holder) { script, session, old in
            for end in ["1", "0", "-1e300"] {
                script.set("GetCredentialsForIdentity", Self.keys(end))
                let before = script.operations.count
                let error = try #require(
                    await #expect(throws: LarderError.self) { _ = try await ask(session, holder, old) })
                try expectTold(error, "identity.unusable")
                #expect(script.operations.count - before <= 4)
                #expect(session.state == (holder == .user ? .signedIn : .guest))
            }
            script.set("GetCredentialsForIdentity", Self.keys("4e9", key: "NEXT"))
            #expect(try await session.cloudCredentials(within: ample).accessKeyID == "NEXT")
        }
    }

    @Test("A pool that never answers is given up at the deadline, and the session goes on", arguments: Holder.allCases)
    func silent(holder: Holder) async throws {
        try await withSession(of: holder) { script, session, old in
            script.set("GetCredentialsForIdentity", Reply(ending: .hang, isSilent: true))
            let error = try #require(
                await #expect(throws: LarderError.self) {
                    _ = try await ask(session, holder, old, within: .milliseconds(300))
                })
            #expect(
                ["session.timedOut", "identity.unreachable", "larder.timedOut"].contains(error.code.rawValue),
                "\(error)")
            try expectTold(error, error.code.rawValue)
            script.set("GetCredentialsForIdentity", Self.keys("4e9", key: "NEXT"))
            // The refresh that was under way goes on until its own end: a guest's first credentials do not.
            if holder == .newGuest {
                #expect(session.state == .signedOut)
                #expect(try await ask(session, holder, old).accessKeyID == "NEXT")
            }
        }
    }
}
