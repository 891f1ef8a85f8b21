import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport

extension Story {
    /// A new user of a Cognito, from the first screen to the sign-out, with a network that goes away meanwhile.
    func useCloud() async throws {
        printout.step(22, "An account with Cognito, its token for AppSync, its keys for S3")
        guard ServerProcess.python != nil else {
            let missing = "an account with Cognito, since its servers are in Python, and LARDER_TEST_PYTHON names none"
            claims.leaveOut(missing)
            return printout.say("left out: \(missing)")
        }
        let name = String(UInt32.random(in: .min ... .max), radix: 36)
        let folder = FileManager.default.temporaryDirectory.appending(path: "larder-demo-cloud-\(name)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
            try await CloudServers.run(client) { cloud in
                let story = try CloudStory(cloud, in: folder, client, printout, claims)
                try await story.tell()
            }
        }
    }
}

/// What happens with the cloud. Each claim is checked at the server, or in the store, after what it speaks of.
private struct CloudStory {
    private static let (user, password) = ("ada", "Correct horse 9")
    private static let time = Duration.seconds(20)
    private static let question = GraphQLOperation("{ name }")

    private let cloud: CloudServers
    private let folder: URL
    private let client: HTTPClient
    private let printout: Printout
    private let claims: Claims
    private let environment: BackendEnvironment
    private let pool: CognitoUserPool
    private let store: Store

    init(
        _ cloud: CloudServers, in folder: URL, _ client: HTTPClient, _ printout: Printout, _ claims: Claims
    ) throws {
        (self.cloud, self.folder, self.client) = (cloud, folder, client)
        (self.printout, self.claims) = (printout, claims)
        environment = try cloud.environment()
        var (users, identities) = (CognitoUserPool.Options(), CognitoIdentityPool.Options())
        (users.endpoint, identities.endpoint) = (cloud.cognito, cloud.cognito)
        let cognito = CognitoIdentityProvider(
            environment: environment, client: client, userPool: users, identityPool: identities)
        pool = try claims.require("the configuration names a user pool", cognito.userPool)
        var options = Store.Options.quiet
        options.keys = InMemoryKeyProvider()
        options.identityProvider = { _ in cognito }
        options.session.margin = .seconds(1)
        store = try Store.open(
            at: folder.appending(path: "store"), schemaText: [CloudServers.schema], options: options)
    }

    func tell() async throws {
        defer { try? store.close() }
        _ = try store.partition(of: environment)
        let account = try await timed { try await makeAccount() }
        let app = account.result
        let session = try app.session
        let tokens = try await session.userPoolTokens(within: Self.time)
        let name = try await fetch(app, tokens)
        let file = try await upload(app)
        printout.say(
            "a Cognito with real proofs of passwords, to which pycognito signs in, an AppSync API that takes the "
                + "pool's tokens alone, and moto's S3, which checks signatures; all by one configuration file")
        printout.fact("an account made, confirmed, and signed in by a proof of the password", account.duration)
        printout.fact("a fetch with the token", name)
        printout.fact("a file uploaded with the identity pool's keys", Figures.text(bytes: file))

        let ended = try await loseNetwork(app, tokens)
        let back = try await timed { try await comeBack(app, after: ended) }
        printout.say(
            "then the network is cut, and the token expires: the cache answers, a mutation and a file are queued, and "
                + "the user stays signed in")
        printout.fact("a token asked for meanwhile: a typed error", ended.error)
        printout.fact("from the network's return to all that was queued at the servers", back.duration)
        printout.fact("refreshes for that", 1)
        try await signOut(session)
    }

    // MARK: An account

    private func makeAccount() async throws -> Partition {
        let flow = await SignInFlow(pool, store: store, pending: .park)
        await flow.perform(.signUp)
        await flow.perform(
            .submit, ["name": Self.user, "newPassword": Self.password, "attribute.email": "ada@example.com"])
        guard case .confirmAccount = await flow.state.step else {
            throw Mismatch(claim: "a code is asked for", expected: "it", found: "\(await flow.state.step)")
        }
        let refused = await code { try await pool.signIn(Self.user, password: Self.password).isSignedIn }
        try claims.expect("the account is of no use before that", refused, is: .userNotConfirmed)
        await flow.perform(.submit, ["code": "000000"])
        try claims.expect(
            "another code is refused", await flow.state.failure?.code.rawValue, is: "cognito.codeMismatch")
        let before = try await cloud.asked().count
        await flow.perform(.submit, ["code": "123456"])
        try claims.expect("with the code the user is signed in", await flow.state.step, is: .done)
        try claims.expect(
            "by a proof of the password", Array(try await cloud.asked().dropFirst(before)),
            is: ["ConfirmSignUp", "InitiateAuth", "RespondToAuthChallenge"])
        let wrong = await code { try await pool.signIn(Self.user, password: "Wrong horse 9").isSignedIn }
        try claims.expect("a proof of another password is refused", wrong, is: .wrongCredentials)
        let app = try claims.require("the user has a partition", await flow.change?.partition)
        try claims.expect("it is the user's", try store.current()?.user, is: .user("sub-\(Self.user)"))
        try claims.expect("the session knows", try app.session.state, is: .signedIn)
        return app.with(
            server: try AppSyncTransport(environment: environment, session: try app.session, client: client))
    }

    private func fetch(_ app: Partition, _ tokens: Credentials.UserPoolTokens) async throws -> String {
        let stranger = app.with(
            server: AppSyncTransport(
                endpoint: cloud.api, authorization: .userPool { _, _ in "no token" }, client: client))
        let refused = try await claims.failure("the API refuses what is no token") { () async throws(LarderError) in
            _ = try await stranger.fetch(Self.question, policy: .networkOnly)
        }
        try claims.expect("which is its answer", refused.code.rawValue, is: "larder.serverErrors")
        try claims.expect("by its own word", try await cloud.seen().last?.status, is: 401)
        let answer = try await app.fetch(Self.question, policy: .networkOnly)
        try claims.expect(
            "the API took the user's token", try await cloud.seen().last,
            is: CloudServers.Seen(status: 200, authorization: tokens.accessToken))
        return try claims.require("it answered", answer.data?["name"]?.string)
    }

    // MARK: Files

    private func withStorage<Result>(
        _ app: Partition, _ body: (S3Transport) async throws -> Result
    ) async throws -> Result {
        var options = S3Transport.Options()
        options.endpoint = cloud.objects
        return try await body(
            try S3Transport(environment: environment, session: try app.session, options: options, client: client))
    }

    private func queueFile(_ name: String, bytes: Int, _ app: Partition) async throws -> (Transfer, ObjectLocation) {
        let file = folder.appending(path: name)
        try Data((0..<bytes).map { UInt8(truncatingIfNeeded: $0) }).write(to: file)
        let location = ObjectLocation(bucket: cloud.storage.bucket, key: "private/\(name)")
        return (try await app.transfers.upload(file, to: location), location)
    }

    /// The size of what the storage has, asked past the network and with its owner's keys; nil where it has nothing.
    private func size(at location: ObjectLocation) async throws -> Int64? {
        var options = S3Transport.Options()
        options.endpoint = cloud.storage.url
        let keys = Credentials.CloudCredentials(
            accessKeyID: cloud.storage.accessKeyID, secretAccessKey: cloud.storage.secretAccessKey, expires: nil)
        return try await S3Transport.withTransport(
            region: StorageServer.region, credentials: { _ in keys }, options: options
        ) { try? await $0.object(at: location, within: Self.time).size }
    }

    private func upload(_ app: Partition) async throws -> Int {
        let bytes = 300_000
        let (transfer, location) = try await queueFile("first.bin", bytes: bytes, app)
        try claims.expect("nothing is there yet", try await size(at: location), is: nil)
        let before = try await cloud.asked()
        try claims.expect("no keys were asked for yet", before.contains("GetCredentialsForIdentity"), is: false)
        try await withStorage(app) { try await TransferRunner(app, storage: $0).drain() }
        try claims.expect("the upload is done", try app.transfers[transfer.id].status().state, is: .done)
        try claims.expect("the storage has it", try await size(at: location), is: Int64(bytes))
        try claims.expect(
            "its keys are the identity pool's", Array(try await cloud.asked().dropFirst(before.count)),
            is: ["GetId", "GetCredentialsForIdentity"])
        return bytes
    }

    // MARK: Without a network

    /// What was queued while there was no network.
    private struct Ended {
        var error: String
        var token: String
        var mutation: MutationID
        var transfer: Transfer
        var location: ObjectLocation
        var refreshes, seen: Int
        var since: Date?
    }

    private func loseNetwork(_ app: Partition, _ tokens: Credentials.UserPoolTokens) async throws -> Ended {
        let session = try app.session
        // The next token is one that expires soon.
        try await cloud.asked(lifetime: 3)
        let short = try await session.userPoolTokens(within: Self.time, refused: tokens)
        try await cloud.asked(lifetime: 3_600)
        try claims.expect("a refresh rotates the refresh token", short.refreshToken != tokens.refreshToken, is: true)
        let end = try claims.require("it is said when the token ends", short.expires)
        let since = try session.standing().since
        try await cloud.network.cut()
        _ = try await waiting(for: "the token has expired") { Date() > end ? true : nil }
        let refreshes = try await self.refreshes()
        let seen = try await cloud.seen().count

        let error = try await claims.failure("no new token can be had") { () async throws(LarderError) in
            _ = try await session.userPoolTokens(within: .seconds(2))
        }
        try claims.expect("since Cognito is away", error.code.rawValue, is: "identity.unreachable")
        let cached = try await app.fetch(Self.question, policy: .networkFirst)
        try claims.expect("the cache answers", cached.data?["name"]?.string, is: "Vega")
        let mutation = try await app.enqueue(GraphQLOperation(#"mutation { name(to: "Deneb") }"#)).id
        let (transfer, location) = try await queueFile("second.bin", bytes: 200_000, app)
        try claims.expect("the user is signed in nevertheless", session.state, is: .signedIn)
        try claims.expect("as before", try session.standing().since, is: since)
        try claims.expect("no server has heard of it", try await cloud.seen().count, is: seen)
        return Ended(
            error: error.code.rawValue, token: short.accessToken, mutation: mutation, transfer: transfer,
            location: location, refreshes: refreshes, seen: seen, since: since)
    }

    private func refreshes() async throws -> Int {
        try await cloud.asked().count { $0 == "GetTokensFromRefreshToken" }
    }

    private func comeBack(_ app: Partition, after ended: Ended) async throws {
        try claims.expect("the mutation waits", try app.mutations(in: [.pending]).map(\.id), is: [ended.mutation])
        try await cloud.network.mend()
        async let sending: Void = MutationRunner(app).drain()
        try await withStorage(app) { try await TransferRunner(app, storage: $0).drain() }
        try await sending
        let seen = try await cloud.seen().dropFirst(ended.seen)
        try claims.expect("the mutation is sent once, and taken", seen.map(\.status), is: [200])
        try claims.expect("with another token", seen.first?.authorization != ended.token, is: true)
        try claims.expect("nothing waits any more", try app.mutations(in: [.pending]).count, is: 0)
        try claims.expect("the file has arrived", try await size(at: ended.location), is: 200_000)
        try claims.expect("one refresh was enough", try await refreshes() - ended.refreshes, is: 1)
        try claims.expect(
            "the user is who was signed in all the time", try app.session.standing().since, is: ended.since)
    }

    private func signOut(_ session: Session) async throws {
        let last = try await session.userPoolTokens(within: Self.time)
        let told = try await session.signOut(within: Self.time).isServerTold
        try claims.expect("Cognito is told of the sign-out", told, is: true)
        try claims.expect(
            "and refuses the refresh token from then on", await code { try await pool.refresh(last) },
            is: .signInAgain)
        try claims.expect("the session knows", session.state, is: .signedOut)
        printout.say("signing out revokes the refresh token, which Cognito then refuses")
    }

    // MARK: Errors

    private func code(_ work: () async throws -> some Sendable) async -> CognitoError.Code? {
        do { _ = try await work() } catch { return (error as? CognitoError)?.code }
        return nil
    }
}

extension SignInStep {
    fileprivate var isSignedIn: Bool {
        if case .signedIn = self { true } else { false }
    }
}
