import AsyncHTTPClient
import Foundation
import Larder
import LarderTestSupport

/// What the cloud consists of here, behind a network that can be cut: a Cognito with real proofs of passwords, to which
/// pycognito signs in; an AppSync API; and moto's S3, which checks signatures.
struct CloudServers: Sendable {
    static let schema = """
        type Query { name: String }
        type Mutation { name(to: String): String }
        """
    private static let poolID = "us-east-1_AbC123xyz"
    private static let identityPoolID = "us-east-1:00000000-1111-2222-3333-444444444444"

    let storage: StorageServer
    let network: CutNetwork
    private let client: HTTPClient
    /// Where the servers themselves are, past the network, and where they are through it.
    private let cognitoItself, apiItself: URL
    let cognito, api, objects: URL

    /// Runs `body` with the servers, which have ended when this returns or throws.
    static func run(_ client: HTTPClient, _ body: (CloudServers) async throws -> Void) async throws {
        try await StorageServer.run { storage in
            let setup = """
                {"pool": "\(poolID)", "client": "client", "identityPool": "\(identityPoolID)", "rotates": true,
                 "grace": 60, "accessKey": "\(storage.accessKeyID)", "secretKey": "\(storage.secretAccessKey)",
                 "sessionToken": null}
                """
            try await started("cognito.py", setup) { cognito in
                try await started("appsync.py", #"{"pool": "\#(poolID)", "region": "us-east-1"}"#) { api in
                    let servers = [try url(cognito), try url(api), storage.url]
                    try await CutNetwork.run(to: servers) { network in
                        try await body(CloudServers(storage, servers, network, client))
                    }
                }
            }
        }
    }

    private static func started(
        _ script: String, _ setup: String, _ body: (ServerProcess) async throws -> Void
    ) async throws {
        try await withStarted(try await ServerProcess.start(script, [setup]), stop: { await $0.stop() }, body)
    }

    private static func url(_ server: ServerProcess) throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(server.words[0])/") else {
            throw Mismatch(claim: "a server says its port", expected: "a port", found: server.words[0])
        }
        return url
    }

    private init(_ storage: StorageServer, _ servers: [URL], _ network: CutNetwork, _ client: HTTPClient) {
        (self.storage, self.network, self.client) = (storage, network, client)
        (cognitoItself, apiItself) = (servers[0], servers[1])
        (cognito, api, objects) = (network.urls[0], network.urls[1].appending(path: "graphql"), network.urls[2])
    }

    /// As a program has it from a file.
    func environment() throws -> BackendEnvironment {
        let json = """
            {"AppSync": {"Default": {"ApiUrl": "\(api.absoluteString)", "Region": "us-east-1",
              "AuthMode": "AMAZON_COGNITO_USER_POOLS"}},
             "CognitoUserPool": {"Default": {"PoolId": "\(Self.poolID)", "AppClientId": "client",
              "Region": "us-east-1"}},
             "CredentialsProvider": {"CognitoIdentity": {"Default": {
              "PoolId": "\(Self.identityPoolID)", "Region": "us-east-1"}}},
             "S3TransferUtility": {"Default": {"Bucket": "\(storage.bucket)", "Region": "\(StorageServer.region)"}}}
            """
        return try ConfigurationFile(json: Array(json.utf8), origin: "awsconfiguration.json")
            .environment(named: "movies")
    }

    // MARK: What the servers tell

    /// What the API has answered to whom.
    struct Seen: Decodable, Sendable, Equatable {
        var status: Int
        var authorization: String?
    }

    /// The operations that Cognito was asked for, oldest first.
    ///
    /// - Parameter lifetime: How long the tokens are good that it gives from now on, in seconds.
    @discardableResult
    func asked(lifetime: Int? = nil) async throws -> [String] {
        try await control(cognitoItself, lifetime.map { #"{"lifetime": \#($0)}"# } ?? "{}")
    }

    func seen() async throws -> [Seen] { try await control(apiItself, "{}") }

    private func control<Answer: Decodable>(_ server: URL, _ json: String) async throws -> Answer {
        var request = HTTPClientRequest(url: server.appending(path: "control").absoluteString)
        request.method = .POST
        request.body = .bytes(Array(json.utf8))
        let body = try await client.execute(request, timeout: .seconds(20)).body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(Answer.self, from: Data(body.readableBytesView))
    }
}
