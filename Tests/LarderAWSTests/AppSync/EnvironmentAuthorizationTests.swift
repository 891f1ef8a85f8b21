import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import NIOHTTP1
import Synchronization
import Testing

/// What an environment's transport takes of the environment and of its options.
@Suite("AppSync by an environment", .timeLimit(.minutes(5)))
struct EnvironmentAuthorizationTests {
    private struct NoSession: Error {}

    private func authorization(_ environment: BackendEnvironment) throws -> AppSyncAuthorization {
        try AppSyncTransport(environment: environment, session: try { throw NoSession() }(), client: .shared)
            .authorization
    }

    private func environment(_ url: String, region: String? = nil) throws -> BackendEnvironment {
        BackendEnvironment(name: "movies", api: .init(url: try #require(URL(string: url)), region: region))
    }

    @Test("An API whose environment does not say it is asked with its key, a user's token or signatures, in this order")
    func likely() throws {
        var environment = try environment("https://example.com/graphql", region: "eu-west-1")
        environment.identityPool = .init(id: "eu-west-1:1", region: "eu-west-1")
        if case .iam = try authorization(environment) {} else { Issue.record("no signatures") }
        environment.userPool = .init(id: "eu-west-1_a", clientID: "c", region: "eu-west-1")
        if case .userPool = try authorization(environment) {} else { Issue.record("no token") }
        environment.apiKey = "da2-key"
        if case .apiKey("da2-key") = try authorization(environment) {} else { Issue.record("no key") }
    }

    @Test(
        "Requests are signed for the region that the API says, otherwise for that of its URL, and never for the pool's",
        arguments: [
            ("https://example.com/graphql", "eu-west-1", "eu-west-1"),
            ("https://x.appsync-api.us-east-2.amazonaws.com/graphql", nil, "us-east-2"),
        ])
    func region(url: String, said: String?, signed: String) throws {
        var environment = try environment(url, region: said)
        environment.identityPool = .init(id: "ap-south-1:1", region: "ap-south-1")
        var region: String?
        if case .iam(let named, _) = try authorization(environment) { region = named }
        #expect(region == signed)
    }

    @Test(
        "The error of an environment that lacks what its authorization needs names the environment and what is missing",
        arguments: [
            (.apiKey, "a key"), (.iam, "the region"), (.openIDConnect, "another provider's token"),
            (.lambda, "a token for a Lambda function"), (nil, "how its API is authorized"),
        ] as [(BackendEnvironment.Authorization?, String)])
    func missing(mode: BackendEnvironment.Authorization?, what: String) throws {
        let environment = try environment("https://example.com/graphql")
        let error = #expect(throws: LarderError.self) {
            try AppSyncTransport(
                environment: environment, session: try { throw NoSession() }(), authorization: mode, client: .shared)
        }
        #expect(error?.message.contains("movies") == true)
        #expect(error?.message.contains(what) == true)
    }

    @Test("An API that takes a user's proof has a transport also where the environment names no pool")
    func withoutPools() throws {
        var environment = try environment("https://example.com/graphql", region: "eu-west-1")
        environment.authorization = .userPool
        if case .userPool = try authorization(environment) {} else { Issue.record("no token") }
        environment.authorization = .iam
        if case .iam = try authorization(environment) {} else { Issue.record("no signatures") }
    }

    @Test("An environment that cannot be one makes no transport, though nothing is missing for its authorization")
    func unusable() throws {
        var environment = try environment("https://example.com/graphql")
        (environment.apiKey, environment.name) = ("da2-key", "a..b")
        let error = #expect(throws: LarderError.self) { try authorization(environment) }
        #expect(error?.code == .environment)
    }

    @Test(
        "What null means in an event is what the options say", arguments: [.trust, .ignore, .fetch] as [NullsInEvents])
    func nulls(_ nulls: NullsInEvents) throws {
        var options = HTTPTransport.Options()
        options.subscriptions.nulls = nulls
        let transport = AppSyncTransport(
            endpoint: try environment("https://example.com").api.url, authorization: .apiKey("k"), client: .shared,
            options: options)
        #expect(transport.nullsInEvents == nulls)
    }

    @Test(
        "A request whose credentials are refused by name, with the status 403, is made once more with others",
        arguments: ["UnauthorizedException", "ExpiredTokenException", "UnrecognizedClientException", "Other"],
        [403, 200, 400])
    func refused(kind: String, status: Int) async throws {
        try await ScriptedStorage.run { _ in
            Reply(
                status: .init(statusCode: status), headers: ["Content-Type": "application/json"],
                body: Array(#"{"errors":[{"errorType":"\#(kind)","message":"m"}]}"#.utf8))
        } _: { (server, _) throws in
            let asked = Mutex<[Bool]>([])
            let transport = AppSyncTransport(
                endpoint: server.url,
                authorization: .iam(region: "eu-west-1") { refused, _ in
                    asked.withLock { $0.append(refused != nil) }
                    return AppSyncFixture.credentials
                }, client: .shared)
            _ = try? await transport.send(.appSync("{ name }"), within: ample)
            #expect(asked.withLock(\.self) == (kind == "Other" || status != 403 ? [false] : [false, true]))
        }
    }

    private static let vega = Reply(
        headers: ["Content-Type": "application/json"], body: Array(#"{"data": {"name": "Vega"}}"#.utf8))

    /// The requests of a signed query, of which the API refuses the first for these errors and takes the others.
    private func signedRequests(
        refusedFirst errors: String, date: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [Received] {
        try await ScriptedStorage.run { request in
            var reply = Self.vega
            if let date { reply.headers.add(name: "Date", value: date) }
            if request.number == 0 { (reply.status, reply.body) = (.forbidden, Array(#"{"errors":\#(errors)}"#.utf8)) }
            return reply
        } _: { server, _ in
            let transport = AppSyncTransport(
                endpoint: server.url, authorization: .iam(region: "eu-west-1") { _, _ in AppSyncFixture.credentials },
                client: .shared)
            let answer = try await transport.send(.appSync("{ name }"), within: ample)
            #expect(answer.status == 200, sourceLocation: sourceLocation)
            return server.requests
        }
    }

    @Test(
        "A request whose signature the API refuses, by whichever of AWS's names, is made once more by the API's time",
        arguments: ["InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired", "RequestTimeTooSkewed"])
    func refusedSignature(kind: String) async throws {
        let requests = try await signedRequests(
            refusedFirst: #"[{"errorType":"\#(kind)","message":"m"}]"#, date: "Tue, 01 Jan 2030 12:00:00 GMT")
        let times = requests.map { $0.headers.first(name: "x-amz-date") ?? "none" }
        #expect(times.count == 2)
        #expect(times.last?.hasPrefix("20300101T120") == true, "\(times)")
    }

    @Test("Credentials that the API refuses are replaced also where another error of its answer has no type")
    func refusedBesideAnother() async throws {
        let errors = #"[{"message":"m"},{"errorType":"ExpiredTokenException"}]"#
        #expect(try await signedRequests(refusedFirst: errors).count == 2)
    }

    @Test("A token that is refused with the status 401 is replaced also where the answer is no GraphQL response")
    func refusedWithoutResponse() async throws {
        try await ScriptedStorage.run { request in
            request.number > 0 ? Self.vega : Reply(status: .unauthorized)
        } _: { (server, _) throws in
            let transport = AppSyncTransport(
                endpoint: server.url, authorization: .lambda { refused, _ in refused == nil ? "old" : "new" },
                client: .shared)
            #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 200)
            #expect(server.requests.map { $0.headers.first(name: "authorization") } == ["old", "new"])
        }
    }

    @Test("A token for a Lambda function has at most 2,048 characters", arguments: [2_048, 2_049])
    func lambda(count: Int) async throws {
        try await ScriptedStorage.run { _ in
            Self.vega
        } _: { (server, _) throws in
            let transport = AppSyncTransport(
                endpoint: server.url, authorization: .lambda { _, _ in String(repeating: "t", count: count) },
                client: .shared)
            var code: TransportError.Code?
            do throws(TransportError) { _ = try await transport.send(.appSync("{ name }"), within: ample) } catch {
                code = error.code
            }
            #expect(code == (count == 2_048 ? nil : .notPrepared))
            #expect(server.requests.count == (count == 2_048 ? 1 : 0))
        }
    }

    @Test("What gives the proofs is told how much of the request's time is left")
    func timeForProof() async throws {
        try await ScriptedStorage.run { _ in
            Self.vega
        } _: { (server, _) throws in
            let times = Mutex<[Duration]>([])
            let transport = AppSyncTransport(
                endpoint: server.url,
                authorization: .openIDConnect { _, time in
                    times.withLock { $0.append(time) }
                    return "token"
                }, client: .shared)
            _ = try await transport.send(.appSync("{ name }"), within: ample)
            let time = try #require(times.withLock { $0.first })
            #expect(time > .zero && time <= ample)
        }
    }

    @Test("The short name `appSync` makes a transport with the given API, authorization and options")
    func shortNames() throws {
        var options = HTTPTransport.Options()
        options.idempotency = .variable(name: "key")
        var environment = try environment("https://example.com/graphql")
        environment.apiKey = "da2-key"
        let byURL = AppSyncTransport.appSync(
            environment.api.url, authorization: .apiKey("da2-key"), options: options)
        let byEnvironment = try AppSyncTransport.appSync(
            environment: environment, session: try { throw NoSession() }(), options: options)
        for transport in [byURL, byEnvironment] {
            #expect(transport.endpoint == environment.api.url && transport.idempotency == options.idempotency)
            #expect(transport.server == "https://example.com/graphql")
            if case .apiKey("da2-key") = transport.authorization {} else { Issue.record("no key") }
        }
    }

    @Test("What the options say of repeats and of refusals is what the queue is told")
    func told() throws {
        let refusals = ServerRefusals(statuses: [409], errorKinds: ["BUSY"])
        var options = HTTPTransport.Options()
        (options.refusals, options.idempotency) = (refusals, .variable(name: "key"))
        let transport = AppSyncTransport(
            endpoint: try environment("https://example.com").api.url, authorization: .apiKey("k"), client: .shared,
            options: options)
        #expect(transport.refusals == refusals && transport.idempotency == .variable(name: "key"))
    }
}
