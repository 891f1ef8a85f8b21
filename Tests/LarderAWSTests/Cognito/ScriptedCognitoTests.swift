import AsyncHTTPClient
import Crypto
import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Testing

@testable import LarderAWS

/// Cognito and AppSync by answers that a test says: what no server of another language answers, and what is sent to it.
@Suite("Cognito and AppSync by scripted answers", .timeLimit(.minutes(10)))
struct ScriptedCognitoTests {
    private static let pool = "cn-north-1_AbC123xyz"
    private static let keys = #"{"AccessKeyId": "A", "SecretKey": "S", "SessionToken": "T", "Expiration": 784112377}"#

    /// Runs `body` with a server that answers by the operation that it is asked for.
    private func withServer(
        _ answers: [String: String], _ headers: (name: String, value: String)...,
        body: (ScriptedStorage, HTTPClient) async throws -> Void
    ) async throws {
        let headers = headers.map { ($0.name, $0.value) }
        try await ScriptedStorage.run { received in
            let operation = received.headers.first(name: "x-amz-target")?.split(separator: ".").last.map(String.init)
            let answer = answers[operation ?? ""] ?? "{}"
            var all = headers
            all.append(("Content-Type", "application/json"))
            return Reply(headers: .init(all), body: Array(answer.utf8))
        } _: { server, _ in
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                try await body(server, client)
            }
        }
    }

    /// A token of the pool, unsigned.
    private func token(_ use: String, of user: String, named name: String? = nil) -> String {
        let client = use == "id" ? "aud" : "client_id"
        let username = name.map { #", "username": "\#($0)""# } ?? ""
        let claims = """
            {"iss": "https://cognito-idp.cn-north-1.amazonaws.com.cn/\(Self.pool)", "token_use": "\(use)",
             "\(client)": "client", "sub": "\(user)", "iat": 1000, "exp": 4600\(username)}
            """
        let text = Data(claims.utf8).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "e30.\(text).e30"
    }

    private func tokens(of user: String, named name: String? = nil) -> Credentials.UserPoolTokens {
        Credentials.UserPoolTokens(
            idToken: token("id", of: user), accessToken: token("access", of: user, named: name), refreshToken: "R",
            expires: nil)
    }

    private func result(of user: String, endingIn seconds: Int = 3600) -> String {
        """
        {"AuthenticationResult": {"IdToken": "\(token("id", of: user))",
         "AccessToken": "\(token("access", of: user))", "ExpiresIn": \(seconds)}}
        """
    }

    private func userPool(
        _ server: ScriptedStorage, _ client: HTTPClient, secret: String? = nil, byFlow: Bool = false
    ) -> CognitoUserPool {
        var options = CognitoUserPool.Options()
        (options.endpoint, options.refreshesByFlow) = (server.url, byFlow)
        options.wallClock = { Date(timeIntervalSince1970: 2_000_000_000) }
        return CognitoUserPool(
            .init(id: Self.pool, clientID: "client", region: "cn-north-1"), clientSecret: secret, client: client,
            options: options)
    }

    /// The members of the JSON that a request brought.
    private func members(_ request: Received) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
    }

    @Test("Cloud credentials are good for as long as the server's clock says, whatever this machine's clock shows")
    func serversClock() async throws {
        let answers = ["GetCredentialsForIdentity": #"{"IdentityId": "i", "Credentials": \#(Self.keys)}"#]
        // 784111777: ten minutes before the credentials end.
        try await withServer(answers, ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")) { server, client in
            var options = CognitoIdentityPool.Options()
            options.endpoint = server.url
            options.wallClock = { Date(timeIntervalSince1970: 2_000_000_000) }
            let pool = CognitoIdentityPool(
                .init(id: "cn-north-1:1", region: "cn-north-1"), client: client, options: options)
            let keys = try await pool.credentials(identityID: "i", logins: [:], within: ample)
            #expect(keys.expires == Date(timeIntervalSince1970: 2_000_000_600))
        }
    }

    @Test(
        "A user pool is named to the identity pool by the domain of its own region, also where that pool has another",
        arguments: [
            ("cn-north-1", "amazonaws.com.cn", "cn-north-1"), ("eu-west-1", "amazonaws.com", "eu-west-1"),
            ("eu-west-1", "amazonaws.com", "us-east-1"),
        ])
    func loginName(_ region: String, _ domain: String, _ other: String) async throws {
        let answers = [
            "GetId": #"{"IdentityId": "i"}"#,
            "GetCredentialsForIdentity": #"{"IdentityId": "i", "Credentials": \#(Self.keys)}"#,
        ]
        try await withServer(answers) { server, client in
            var options = CognitoIdentityPool.Options()
            options.endpoint = server.url
            let environment = BackendEnvironment(
                name: "movies", api: .init(url: server.url, region: other),
                userPool: .init(id: "\(region)_a", clientID: "client", region: region),
                identityPool: .init(id: "\(other):1", region: other))
            let provider = CognitoIdentityProvider(environment: environment, client: client, identityPool: options)
            let user = Credentials(userPool: tokens(of: "ann"))
            _ = try await provider.refresh(.cloud, of: user, within: ample)
            for request in server.requests {
                let logins = try members(request)["Logins"] as? [String: String]
                #expect(logins == ["cognito-idp.\(region).\(domain)/\(region)_a": tokens(of: "ann").idToken])
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test(
        "Cognito is asked at the host of the pool's region, in China too",
        arguments: [("cn-north-1", "amazonaws.com.cn"), ("eu-west-1", "amazonaws.com")])
    func host(_ region: String, _ domain: String) {
        for (name, host) in [(CognitoService.Name.userPools, "cognito-idp"), (.identityPools, "cognito-identity")] {
            let service = CognitoService(
                name, region: region, endpoint: nil, CognitoService.held(.shared), wallClock: { Date() })
            #expect(service.url == "https://\(host).\(region).\(domain)/")
        }
    }

    private func environment(_ name: String) throws -> BackendEnvironment {
        let url = try #require(URL(string: "https://\(name).example.com/graphql"))
        return BackendEnvironment(
            name: name, api: .init(url: url, region: "eu-west-1"), bucket: .init(name: "photos", region: "eu-west-1"))
    }

    /// Runs `body` with a user who has signed in to the environment "a".
    private func withUser(_ body: (Store, Partition, Credentials) async throws -> Void) async throws {
        let provider = InMemoryIdentityProvider()
        try await withNewStore(of: provider) { store, _ in
            let (app, user) = (try store.partition(of: environment("a")), provider.signIn("ada"))
            try await app.session.signIn(user, within: ample)
            try await body(store, app, user)
        }
    }

    @Test("Transports that are given a partition's session go on once the partition is the current one again")
    func sessionAfterSwitch() async throws {
        try await withUser { store, app, user in
            let byTokens = AppSyncAuthorization.userPool(try app.session)
            let byKeys = AppSyncAuthorization.iam(region: "eu-west-1", try app.session)
            let storage = try S3Transport(environment: environment("a"), session: try app.session, client: .shared)
            guard case .userPool(let token) = byTokens, case .iam(_, let keys) = byKeys else {
                Issue.record("\(byTokens), \(byKeys)")
                return
            }
            for name in ["b", "a"] { _ = try await store.switch(to: environment(name)) }
            #expect(try await token(nil, ample) == user.userPool?.accessToken)
            #expect(try await keys(nil, ample) == user.cloud)
            #expect(try await storage.credentialSource(nil, .now + ample) == user.cloud)
        }
    }

    @Test("A transport that is made of an environment goes on once its partition is the current one again")
    func environmentAfterSwitch() async throws {
        try await withUser { store, app, user in
            var (users, signed) = (try environment("a"), try environment("a"))
            (users.authorization, signed.authorization) = (.userPool, .iam)
            let transports = [
                try AppSyncTransport(environment: users, session: try app.session, client: .shared),
                try AppSyncTransport(environment: signed, session: try app.session, client: .shared),
                try AppSyncTransport.appSync(environment: users, session: try app.session),
            ]
            for name in ["b", "a"] { _ = try await store.switch(to: environment(name)) }
            for transport in transports {
                switch transport.authorization {
                case .userPool(let token): #expect(try await token(nil, ample) == user.userPool?.accessToken)
                case .iam(_, let keys): #expect(try await keys(nil, ample) == user.cloud)
                default: Issue.record("\(transport.authorization)")
                }
            }
        }
    }

    private func expectShutDown(
        _ client: HTTPClient, _ server: ScriptedStorage, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let request = HTTPClientRequest(url: server.url.absoluteString)
        await #expect(throws: HTTPClientError.alreadyShutdown, sourceLocation: sourceLocation) {
            _ = try await client.execute(request, timeout: .seconds(60))
        }
    }

    @Test("A client that an identity provider has made for its pools ends with them")
    func ownClientOfProvider() async throws {
        try await withServer([:]) { server, _ in
            let environment = BackendEnvironment(
                name: "movies", api: .init(url: server.url),
                userPool: .init(id: Self.pool, clientID: "client", region: "cn-north-1"))
            var provider: CognitoIdentityProvider? = CognitoIdentityProvider(environment: environment)
            let client = try #require(provider?.userPool?.service.client)
            provider = nil
            await expectShutDown(client, server)
        }
    }

    @Test("A client that a pool has made for itself ends with the pool")
    func ownClient() async throws {
        try await withServer([:]) { server, _ in
            var options = CognitoUserPool.Options()
            options.endpoint = server.url
            var pool: CognitoUserPool? = CognitoUserPool(
                .init(id: Self.pool, clientID: "client", region: "cn-north-1"), options: options)
            let client = try #require(pool?.service.client)
            pool = nil
            await expectShutDown(client, server)
        }
    }

    /// Expects that Eve's tokens, which the operation brings, are refused for another user, and taken for her.
    private func expectOnlyEve(
        _ operation: String, byFlow: Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withServer([operation: result(of: "eve")]) { server, client in
            let pool = userPool(server, client, byFlow: byFlow)
            let code = try await cognitoCode(sourceLocation: sourceLocation) {
                try await pool.refresh(tokens(of: "ann"), within: ample)
            }
            #expect(code == .foreignToken, sourceLocation: sourceLocation)
            _ = try await pool.refresh(tokens(of: "eve"), within: ample)
        }
    }

    @Test("Tokens of another user that a refresh brings are refused")
    func otherUser() async throws {
        try await expectOnlyEve("GetTokensFromRefreshToken", byFlow: false)
    }

    @Test("Tokens of another user that a refresh by flow brings are refused")
    func otherUserByFlow() async throws {
        try await expectOnlyEve("InitiateAuth", byFlow: true)
    }

    @Test(
        "Tokens end when the first thing that says so ends: the answer, or one of the tokens", arguments: [60, 7_200])
    func firstEnd(_ seconds: Int) async throws {
        let answers = ["GetTokensFromRefreshToken": result(of: "ann", endingIn: seconds)]
        try await withServer(answers) { server, client in
            let new = try await userPool(server, client).refresh(tokens(of: "ann"), within: ample)
            // The tokens themselves are good for an hour.
            let end = 2_000_000_000 + Double(min(seconds, 3_600))
            #expect(new.expires == Date(timeIntervalSince1970: end))
        }
    }

    @Test("A sign-in by another name goes on with the name by which the pool knows the user")
    func alias() async throws {
        let answers = [
            "InitiateAuth": """
            {"ChallengeName": "SMS_MFA", "Session": "s", "ChallengeParameters": {"USERNAME": "sub-ann"}}
            """,
            "RespondToAuthChallenge": result(of: "sub-ann"),
        ]
        try await withServer(answers) { server, client in
            let pool = userPool(server, client)
            let challenge = try await pool.signIn(
                "ann@example.com", password: "word", flow: .password, within: ample
            ).challenge
            #expect(challenge.user == "sub-ann")
            _ = try await pool.answer(challenge, .code("123456"), within: ample).tokens
            let responses = try members(#require(server.requests.last))["ChallengeResponses"] as? [String: String]
            #expect(responses == ["USERNAME": "sub-ann", "SMS_MFA_CODE": "123456"])
        }
    }

    /// What proves to the pool that its client has the secret.
    private func secretProof(_ secret: String, for user: String) -> String {
        let hash = HMAC<SHA256>.authenticationCode(
            for: Data("\(user)client".utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return Data(hash).base64EncodedString()
    }

    @Test("A refresh by flow proves the client's secret for the user's name, and for the id where there is no name")
    func secretHash() async throws {
        try await withServer(["InitiateAuth": result(of: "sub-ann")]) { server, client in
            let pool = userPool(server, client, secret: "secret", byFlow: true)
            for (name, proven) in [("ann", "ann"), (nil, "sub-ann")] {
                _ = try await pool.refresh(tokens(of: "sub-ann", named: name), within: ample)
                let parameters = try members(#require(server.requests.last))["AuthParameters"] as? [String: String]
                #expect(parameters?["SECRET_HASH"] == secretProof("secret", for: proven))
            }
        }
    }

    @Test("A refresh by flow proves the client's secret that the tokens keep, where the program gives none")
    func keptSecretHash() async throws {
        try await withServer(["InitiateAuth": result(of: "ann")]) { server, client in
            var kept = tokens(of: "ann", named: "ann")
            kept.clientSecret = "secret"
            _ = try await userPool(server, client, byFlow: true).refresh(kept, within: ample)
            let parameters = try members(#require(server.requests.last))["AuthParameters"] as? [String: String]
            #expect(parameters?["SECRET_HASH"] == secretProof("secret", for: "ann"))
        }
    }

    @Test("The client's secret that a pool was given counts for more than the one that the tokens keep")
    func ownSecret() async throws {
        let answer = try CognitoScript.result()
        try await CognitoScript.run(["GetTokensFromRefreshToken": answer, "InitiateAuth": answer]) {
            (script) async throws in
            var old = try CognitoScript.tokens()
            old.clientSecret = "old"
            let new = try await script.pool(secret: "s").refresh(old, within: ample)
            #expect(new.clientSecret == "s")
            #expect(try script.members()["ClientSecret"] as? String == "s")
            _ = try await script.pool(secret: "s") { $0.refreshesByFlow = true }.refresh(old, within: ample)
            let parameters = try script.members()["AuthParameters"] as? [String: String]
            #expect(parameters?["SECRET_HASH"] == secretProof("s", for: "sub-ann"))
            let pages = try script.pages()
            try await script.pool(secret: "s") { $0.refreshesOn = pages }.revoke(old, within: ample)
            let proof = "Basic " + Data("client:s".utf8).base64EncodedString()
            #expect(script.server.requests.last?.headers["authorization"] == [proof])
        }
    }

    @Test("No error quotes an answer that cannot be understood, which may have tokens")
    func unquoted() async throws {
        let answer = #"{"AuthenticationResult": {"IdToken": "HIDDEN", "AccessToken": 5}}"#
        try await CognitoScript.run(["InitiateAuth": answer]) { (script) async throws in
            let error = await #expect(throws: CognitoError.self) {
                _ = try await script.pool().signIn("ann", password: "word", flow: .password, within: ample)
            }
            #expect(error?.code == .unusableAnswer && error.map { "\($0)".contains("HIDDEN") } == false)
        }
    }

    @Test("Calls of the pools have half a minute each, unless the program says otherwise")
    func defaultTimes() {
        #expect(CognitoUserPool.Options().timeout == .seconds(30))
        #expect(CognitoIdentityPool.Options().timeout == .seconds(30))
    }

    @Test("An answer of more than a mebibyte is given up, whatever it says")
    func longAnswer() async throws {
        let more = String(repeating: "x", count: 1 << 20)
        let answers = [
            "GetId": #"{"IdentityId": "i", "more": "\#(more)"}"#,
            "GetCredentialsForIdentity": #"{"IdentityId": "i", "Credentials": \#(Self.keys)}"#,
        ]
        try await withServer(answers) { (server, client) async throws in
            var options = CognitoIdentityPool.Options()
            options.endpoint = server.url
            let pool = CognitoIdentityPool(
                .init(id: "cn-north-1:1", region: "cn-north-1"), client: client, options: options)
            #expect(
                try await cognitoCode { try await pool.credentials(identityID: nil, logins: [:], within: ample) }
                    == .unusableAnswer)
            #expect(server.requests.count == 1)
        }
    }

    @Test("A proof that the program sends itself counts for more than the transport's, which is left out")
    func ownProof() async throws {
        try await withServer(["": #"{"data": {"name": "Vega"}}"#]) { server, client in
            for (authorization, name) in [
                (AppSyncAuthorization.userPool { _, _ in "theirs" }, "Authorization"), (.apiKey("theirs"), "X-API-Key"),
            ] {
                let transport = AppSyncTransport(endpoint: server.url, authorization: authorization, client: client)
                var request = GraphQLRequest.appSync("{ name }")
                request.headers = [.init(name: name, value: "mine")]
                _ = try await transport.send(request, within: ample)
                #expect(server.requests.last?.headers[name] == ["mine"])
            }
        }
    }

    @Test("The device of a sign-in can be remembered after that of another sign-in was")
    func rememberedEach() async throws {
        try await CognitoScript.run { (script) async throws in
            func named(_ key: String) throws -> String {
                let device = #"{"DeviceKey": "\#(key)", "DeviceGroupKey": "G"}"#
                return try CognitoScript.result(more: #", "ExpiresIn": 3600, "NewDeviceMetadata": \#(device)"#)
            }
            let pool = script.pool()
            script.set("InitiateAuth", try named("D"))
            let first = try await pool.signIn("ann", password: "word", flow: .password, within: ample).tokens
            script.set("InitiateAuth", try named("E"))
            let second = try await pool.signIn("bob", password: "word", flow: .password, within: ample).tokens
            #expect(try await pool.rememberDevice(of: first, within: ample)?.key == "D")
            #expect(try await pool.rememberDevice(of: second, within: ample)?.key == "E")
        }
    }
}
