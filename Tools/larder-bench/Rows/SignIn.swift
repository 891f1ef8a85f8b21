import AsyncHTTPClient
import BigInt
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTesting

extension Bench {
    /// What the client computes in a sign-in that proves a password.
    func passwordProof() async throws -> [BenchRow] {
        func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: 0...255) } }
        let prime = SecureRemotePassword.prime
        let two = SecureRemotePassword.generator
        // Every number of the server's is as good as another.
        let theirs = two.power(BigUInt(Data(random(32))), modulus: prime)
        let (serverValue, salt) = (String(theirs, radix: 16), String(BigUInt(Data(random(16))), radix: 16))
        let (secret, block) = (random(32), Data(random(800)))
        let (first, second) = (BigUInt(Data(secret)), BigUInt(Data(random(64))))
        let times = try await Measurement.times(
            rounds: rounds,
            [
                {
                    try Measurement.time {
                        let client = SecureRemotePassword(secret: secret)
                        keep(client.publicText)
                        let key = try client.key(
                            pool: "AbC123xyz", user: "ada", password: "a password", salt: salt,
                            serverValue: serverValue)
                        keep(
                            SecureRemotePassword.signature(
                                key: key, pool: "AbC123xyz", user: "ada", block: block,
                                timestamp: "Tue Feb 3 04:05:06 UTC 2026"))
                    }
                },
                {
                    Measurement.time {
                        keep(two.power(first, modulus: prime))
                        keep(theirs.power(second, modulus: prime))
                    }
                },
            ])
        return [
            BenchRow(
                name: "sign-in", what: "what the client computes to prove a password", times,
                floorName: "two powers modulo the same 3,072 bits, by the package: exponents of 256 and 512 bits",
                reach: .ratio(1.3))
        ]
    }

    /// Many callers that need tokens while these are refreshed.
    func sharedRefresh() async throws -> [BenchRow] {
        try await withSession { server, pool, partition in
            let session = try partition.session
            var rows: [BenchRow] = []
            for (name, delay) in [("shared-refresh", Duration.milliseconds(50)), ("shared-refresh-near", .zero)] {
                server.delay = delay
                let times = try await Measurement.times(
                    rounds: rounds,
                    [
                        { try await Self.refresh(by: 1_000, session, server) },
                        {
                            let tokens = TokenServer.tokens(0)
                            return try await Measurement.time { keep(try await pool.refresh(tokens)) }
                        },
                        { try await Self.refresh(by: 1, session, server) },
                    ])
                let what = "1,000 callers ask for tokens, which are refreshed once, sealed and durable"
                let note = "the pool answers after \(Int(delay / .milliseconds(1))) ms; 1 request"
                rows.append(
                    BenchRow(
                        name: name, what: what, Array(times[..<2]), floorName: "one refresh over loopback, not stored",
                        reach: .ratio(1.1), note: note))
                rows.append(
                    BenchRow(
                        name: "\(name)-stored", what: what, [times[0], times[2]], floorName: "the same for one caller",
                        reach: .ratio(1.1), note: note))
            }
            return rows
        }
    }

    private static func refresh(by count: Int, _ session: Session, _ server: TokenServer) async throws -> Double {
        let old = try await session.userPoolTokens(within: .seconds(60))
        let before = server.refreshes
        let time = try await Measurement.time {
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<count {
                    group.addTask {
                        try await session.userPoolTokens(within: .seconds(60), refused: old) != old
                    }
                }
                for try await isNew in group where !isNew { throw BenchFailure("a caller was given the old tokens") }
            }
        }
        guard server.refreshes == before + 1 else {
            throw BenchFailure("there were \(server.refreshes - before) requests")
        }
        return time
    }

    /// A request that is sent with a session's token.
    func requestSession() async throws -> [BenchRow] {
        try await withSession { server, _, partition in
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                let token = try await partition.session.userPoolTokens(within: .seconds(60)).accessToken
                let endpoint = server.url.appending(path: "graphql")
                func transport(_ authorization: AppSyncAuthorization) -> AppSyncTransport {
                    AppSyncTransport(endpoint: endpoint, authorization: authorization, client: client)
                }
                let transports = [transport(.userPool(try partition.session)), transport(.userPool { _, _ in token })]
                let request = GraphQLRequest(
                    kind: .query, operationName: nil, document: "{ name }",
                    documentHash: String(repeating: "0", count: 64), variables: Array("{}".utf8))
                let count = 200
                let times = try await Measurement.times(
                    rounds: rounds,
                    transports.map { transport in
                        {
                            try await Measurement.time {
                                for _ in 0..<count {
                                    keep(try await transport.send(request, within: .seconds(60)))
                                }
                            } / Double(count)
                        }
                    })
                return [
                    BenchRow(
                        name: "request-session", what: "a request with a session's valid token, over loopback", times,
                        floorName: "the same with a token of its own", reach: .excess(0.000_020))
                ]
            }
        }
    }

    /// Runs the body with a partition whose user has just signed in.
    private func withSession<Result>(
        _ body: (TokenServer, CognitoUserPool, Partition) async throws -> Result
    ) async throws -> Result {
        let path = freshPath("session")
        defer { remove(path) }
        return try await TokenServer.run { server in
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                let environment = BackendEnvironment(
                    name: "movies", api: .init(url: server.url), userPool: TokenServer.pool)
                var pools = CognitoUserPool.Options()
                pools.endpoint = server.url
                let cognito = CognitoIdentityProvider(environment: environment, client: client, userPool: pools)
                guard let pool = cognito.userPool else { throw BenchFailure("there is no user pool") }
                var options = Store.Options()
                options.keys = InMemoryKeyProvider()
                options.identityProvider = { _ in cognito }
                let store = try Store.open(
                    at: URL(filePath: path), schema: try Schema(parsing: ItemShop.schemaText), options: options)
                let partition = try store.partition(of: environment)
                try await partition.session.signIn(Credentials(userPool: TokenServer.tokens(0)), within: .seconds(60))
                let result = try await body(server, pool, partition)
                try store.close()
                return result
            }
        }
    }
}
