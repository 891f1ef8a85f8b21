import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Testing

@Suite(
    "From a configuration to AppSync and S3", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct WiringTests {
    /// Opens a session of a user who has signed in.
    private func withUser(
        _ body: (CognitoFixture, Partition) async throws -> Void
    ) async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                try await app.session.signIn(Credentials(userPool: try await fixture.tokens()), within: ample)
                try await body(fixture, app)
            }
        }
    }

    @Test("A user's cloud credentials are got for the id token, and the identity id stays across restarts")
    func userIdentity() async throws {
        try await CognitoFixture.run { fixture in
            try await withTemporaryFolder { folder in
                let provider = fixture.provider()
                var options = Store.Options()
                options.keys = InMemoryKeyProvider()
                options.identityProvider = { _ in provider }
                var ids: Set<String> = []
                for round in 0..<3 {
                    let store = try Store.open(
                        at: folder.appending(path: "store"), schema: try Schema(parsing: AppSyncFixture.schema),
                        options: options)
                    let app = try store.partition(of: fixture.environment())
                    if round == 0 {
                        try await app.session.signIn(Credentials(userPool: try await fixture.tokens()), within: ample)
                    }
                    let keys = try await app.session.cloudCredentials(within: ample)
                    let next = try await app.session.cloudCredentials(within: ample, refused: keys)
                    #expect(next.accessKeyID != keys.accessKeyID)
                    ids.insert(try await app.session.identityID(within: ample))
                    try store.close()
                }
                #expect(ids.count == 1)
                #expect(try await fixture.control().count { $0 == "GetId" } == 1)
            }
        }
    }

    @Test("A guest gets credentials and keeps the identity id; a pool without guests gives none")
    func guest() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                let session = try app.session
                #expect(try await session.continueAsGuest(within: ample))
                #expect(session.state == .guest)
                let id = try await session.identityID(within: ample)
                let keys = try await session.cloudCredentials(within: ample)
                #expect(try await session.cloudCredentials(within: ample, refused: keys).identityID == id)
            }
            try await fixture.control(#"{"guests": false}"#)
            try await fixture.withStore { _, app in
                let session = try app.session
                #expect(try await session.continueAsGuest(within: ample) == false)
                #expect(session.state == .signedOut)
            }
        }
    }

    @Test("A guest whose credentials cannot be had yet is the same one once they can")
    func begunGuest() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                let session = try app.session
                try await fixture.fail("GetCredentialsForIdentity", #"{"type": "InternalErrorException"}"#)
                for _ in 0..<3 {
                    await #expect(throws: LarderError.self) { _ = try await session.continueAsGuest(within: ample) }
                }
                try await fixture.fail("GetCredentialsForIdentity", nil)
                #expect(try await session.continueAsGuest(within: ample))
                #expect(try await fixture.control().count { $0 == "GetId" } == 1)
                // Another guest is another one.
                let id = try await session.identityID(within: ample)
                #expect(try await session.continueAsGuest(within: ample))
                #expect(try await session.identityID(within: ample) != id)
            }
        }
    }

    @Test("Where a user is signed in, no pool is asked for a guest")
    func guestBesideUser() async throws {
        try await withUser { fixture, app in
            let session = try app.session
            await #expect(throws: LarderError.self) { _ = try await session.continueAsGuest(within: ample) }
            #expect(try await fixture.control().contains("GetId") == false)
        }
    }

    @Test("An identity pool that is away or refuses keeps no token from AppSync")
    func poolsApart() async throws {
        try await withUser { fixture, app in
            try await fixture.fail("GetId", #"{"type": "InternalErrorException"}"#)
            let session = try app.session
            await #expect(throws: LarderError.self) { _ = try await session.cloudCredentials(within: ample) }
            #expect(session.state == .signedIn)
            try await fixture.fail("GetId", #"{"type": "NotAuthorizedException", "message": "no"}"#)
            let error = try #require(
                await #expect(throws: LarderError.self) { _ = try await session.cloudCredentials(within: ample) })
            #expect(error.code.rawValue == "identity.federatedRefused")
            let tokens = try await session.userPoolTokens(within: ample)
            _ = try await session.userPoolTokens(within: ample, refused: tokens)
        }
    }

    @Test("An identity that was deleted is asked for anew")
    func deletedIdentity() async throws {
        try await CognitoFixture.run { fixture in
            let pool = try #require(fixture.provider().identityPool)
            let keys = try await pool.credentials(identityID: "us-east-1:gone", logins: [:], within: ample)
            #expect(keys.identityID != "us-east-1:gone")
            let error = try #require(
                await #expect(throws: CognitoError.self) {
                    _ = try await pool.credentials(
                        identityID: nil, logins: ["cognito-idp.us-east-1.amazonaws.com/x": "no"], within: ample)
                })
            #expect(error.code == .federatedRefused)
        }
    }

    @Test("A user signs in, fetches with a token that the API refuses at first, and uploads with the pool's keys")
    func everything() async throws {
        try await AppSyncFixture.run { appSync in
            try await withStorage { storage, _ in
                try await CognitoFixture.run(rotates: true) { cognito in
                    try await cognito.control(
                        """
                        {"accessKey": "\(storage.accessKeyID)", "secretKey": "\(storage.secretAccessKey)",
                         "sessionToken": null}
                        """)
                    let json = """
                        {"AppSync": {"Default": {"ApiUrl": "\(appSync.endpoint.absoluteString)", "Region": "us-east-1",
                          "AuthMode": "AMAZON_COGNITO_USER_POOLS"}},
                         "CognitoUserPool": {"Default": {"PoolId": "\(CognitoFixture.poolID)", "AppClientId": "client",
                          "Region": "us-east-1"}},
                         "CredentialsProvider": {"CognitoIdentity": {"Default": {
                          "PoolId": "\(CognitoFixture.identityPoolID)", "Region": "us-east-1"}}},
                         "S3TransferUtility": {"Default": {"Bucket": "\(storage.bucket)",
                          "Region": "\(StorageServer.region)"}}}
                        """
                    let environment = try ConfigurationFile(json: Array(json.utf8), origin: "awsconfiguration.json")
                        .environment(named: "movies")
                    try await cognito.withStore(environment) { _, app in
                        let api = try AppSyncTransport(
                            environment: environment, session: try app.session, client: cognito.client)
                        let online = app.with(server: api)
                        let tokens = try await cognito.tokens()
                        try await app.session.signIn(Credentials(userPool: tokens), within: ample)
                        // The API knows the token that the next refresh gives only once it was given.
                        let refused = Task {
                            try await online.fetch(GraphQLOperation("{ name }"), policy: .networkOnly)
                        }
                        _ = await refused.result
                        let now = try await app.session.userPoolTokens(within: ample)
                        #expect(now.accessToken != tokens.accessToken)
                        try await appSync.accept(now.accessToken)
                        let answer = try await online.fetch(GraphQLOperation("{ name }"), policy: .networkOnly)
                        #expect(answer.data?["name"]?.string == "Vega")

                        var options = S3Transport.Options()
                        options.endpoint = storage.url
                        let s3 = try S3Transport(
                            environment: environment, session: try app.session, options: options, client: cognito.client
                        )
                        let place = storage.location()
                        let bytes = Array("hello".utf8)
                        _ = try await s3.put(ObjectBody(bytes), to: place, .init(), idle: .seconds(60))
                        #expect(try await s3.object(at: place, within: ample).size == 5)
                    }
                }
            }
        }
    }

    @Test("Credentials that the storage does not know are refreshed once")
    func unknownKeys() async throws {
        try await withStorage { storage, _ in
            try await CognitoFixture.run { cognito in
                var environment = cognito.environment()
                environment.bucket = .init(name: storage.bucket, region: StorageServer.region)
                try await cognito.control(#"{"sessionToken": null}"#)
                try await cognito.withStore(environment) { _, app in
                    _ = try await app.session.continueAsGuest(within: ample)
                    try await cognito.control(
                        #"{"accessKey": "\#(storage.accessKeyID)", "secretKey": "\#(storage.secretAccessKey)"}"#)
                    var options = S3Transport.Options()
                    options.endpoint = storage.url
                    let s3 = try S3Transport(
                        environment: environment, session: try app.session, options: options, client: cognito.client)
                    _ = try await s3.put(ObjectBody([1, 2, 3]), to: storage.location(), .init(), idle: .seconds(60))
                    #expect(try await cognito.control().count { $0 == "GetCredentialsForIdentity" } == 2)
                }
            }
        }
    }

    @Test("Nobody is signed out by a pool that cannot be reached, however long")
    func offline() async throws {
        try await withUser { fixture, app in
            let session = try app.session
            let tokens = try await session.userPoolTokens(within: ample)
            for fault in [#"{"raw": "", "status": 503}"#, #"{"after": true}"#] {
                try await fixture.fail("GetTokensFromRefreshToken", fault)
                let error = try #require(
                    await #expect(throws: LarderError.self) {
                        _ = try await session.userPoolTokens(within: ample, refused: tokens)
                    })
                #expect(error.code.rawValue == "identity.unreachable")
                #expect(session.state == .signedIn)
            }
        }
    }
}
