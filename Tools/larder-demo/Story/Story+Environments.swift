import Foundation
import GRDBSQLite
import Larder
import LarderHTTP
import RecipeServer

extension Story {
    static let user = "ada"
    /// Nothing here may wait longer.
    private static let deadline = Duration.milliseconds(500)

    /// The backend of the steps before, which named none.
    private var prototype: BackendEnvironment {
        BackendEnvironment(
            name: "prototype", api: .init(url: server.url),
            userPool: .init(id: "eu-west-1_Prototype", clientID: "demonstration", region: "eu-west-1"),
            predecessor: .unnamed)
    }

    /// Another, at an address at which no server answers.
    private var development: BackendEnvironment {
        BackendEnvironment(
            name: "development", api: .init(url: Self.nowhere),
            userPool: .init(id: "eu-west-1_Development", clientID: "demonstration", region: "eu-west-1"))
    }

    private static let nowhere = URL(string: "http://127.0.0.1:9/graphql") ?? URL(filePath: "/")

    /// Works under one backend, signed in, with something unsent.
    func signIn() async throws {
        printout.step(15, "A user signs in, and leaves something unsent")
        app = try store.partition(of: prototype, server: http)
        try claims.expect("what was there is the environment's guests' now", try cookbook().isComplete, is: true)
        let signing = try await timed {
            app = try await store.signIn(
                proof, as: Self.user, pending: .park, within: .seconds(5), server: http
            ).partition
        }
        try claims.expect("somebody is signed in", try app.session.state, is: .signedIn)
        let miss = await claims.code { _ = try self.cookbook() }
        try claims.expect("what guests have fetched is not the user's", miss, is: .miss)
        _ = try await app.fetch(Cookbook().operation, policy: .networkOnly)
        try claims.expect("the user's cookbook is there", try cookbook().isComplete, is: true)
        try await app.enqueue(Questions.rate(KilledSender.id, stars: 5))
        try claims.expect("a mutation is pending", try app.mutations(in: [.pending]).count, is: 1)
        try store.close()

        printout.say(
            "the store now belongs to the environment prototype; \(Self.user) signs in, fetches, and queues a rating")
        printout.fact("from guest to signed in, credentials sealed and durable", signing.duration)
        printout.fact("mutations unsent", 1)
    }

    /// A cold start under another backend, with the network dead and a foreign credential planted.
    func startElsewhere() async throws {
        printout.step(16, "The same program, built for another backend")
        let starting = try await timed {
            store = try Store.open(at: folder, schemaText: [RecipeServer.schema], options: .quiet)
            let refused = await claims.code { _ = try self.store.partition(of: self.development) }
            try claims.expect("unasked, nothing is left", refused?.rawValue, is: "operations.otherPartition")
            app = try store.partition(of: development, leaving: .park)
            try claims.expect("nobody is signed in", try app.session.state, is: .signedOut)
        }
        let miss = await claims.code { _ = try self.cookbook() }
        try claims.expect("nothing of the other's cache is seen", miss, is: .miss)
        try claims.expect("nothing of the other's queue is seen", try app.mutations().count, is: 0)
        let asking = try await timed {
            let error = await claims.code {
                _ = try await self.app.session.credentials(within: Self.deadline)
            }
            try claims.expect("whoever needs credentials is told in time", error, is: .notSignedIn)
        }
        printout.fact("from opening to signed out, ready to sign in", starting.duration)
        printout.fact("who asks for credentials has an error after", asking.duration)

        let name = try claims.require("there is a current partition", try store.current()).name
        let other = try claims.require(
            "there is the user's", try store.partitionIdentities().first { $0.user == .user(Self.user) }
        ).name
        try store.close()
        try plant(from: other, to: name)
        var options = Store.Options()
        // It says so, on standard error, where the program does not say otherwise.
        options.silence()
        store = try Store.open(at: folder, schemaText: [RecipeServer.schema], options: options)
        app = try store.partition(of: development)
        let reading = try await app.session.storedCredentials(within: .seconds(5))
        try claims.expect("what was planted is not used", reading, is: .absent)
        try claims.expect("nobody is signed in by it", try app.session.state == .signedIn, is: false)
        let status = try app.session.status()
        let held = try claims.require("it is in quarantine", status.quarantined.first)
        printout.say("somebody copies prototype's credentials to where development's belong")
        printout.fact("they are put into quarantine", "\(held.reasonName)")
    }

    /// The way back.
    func comeBack() async throws {
        printout.step(17, "And back again")
        let effects = server.effectCount
        let back = try await timed {
            app = try await store.switch(to: prototype, server: http).partition
            try claims.expect("the cache is there", try cookbook().isComplete, is: true)
        }
        try claims.expect("it is the user's", try store.current()?.user, is: .user(Self.user))
        try claims.expect("who is signed in", try app.session.state, is: .signedIn)
        let reading = try await app.session.storedCredentials(within: .seconds(5))
        try claims.expect("the credentials are as they were", reading, is: .present(proof))
        try claims.expect("the mutation is still there", try app.mutations(in: [.pending]).count, is: 1)
        try await MutationRunner(app).drain()
        try claims.expect("it takes effect", server.effectCount, is: effects + 1)
        printout.fact("switched, and read from the cache", back.duration)
        printout.fact("signed in as", Self.user)
        printout.say("the rating that was queued is sent now, to the backend for which it was meant")
    }

    var proof: Credentials {
        Credentials(
            userPool: .init(
                idToken: "the id of \(Self.user)", accessToken: "what \(Self.user) may do",
                refreshToken: "for new ones",
                expires: nil))
    }

    /// Copies rows, as any program can that has the file.
    private func plant(from: String, to: String) throws {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        let path = folder.appending(path: "larder.sqlite").path
        try claims.expect("the database opens", sqlite3_open(path, &database), is: SQLITE_OK)
        func id(_ name: String) -> String { "(SELECT id FROM partition WHERE name = '\(name)')" }
        let sql = """
            INSERT INTO partition_key (partition, sealed_with, sealed, created)
                SELECT \(id(to)), sealed_with, sealed, created FROM partition_key WHERE partition = \(id(from));
            INSERT INTO session (partition, state, reason, changed)
                SELECT \(id(to)), state, reason, changed FROM session WHERE partition = \(id(from));
            INSERT INTO credential (partition, kind, identity, sealed, created, updated)
                SELECT \(id(to)), kind, identity, sealed, created, updated FROM credential
                WHERE partition = \(id(from));
            """
        try claims.expect("the rows are copied", sqlite3_exec(database, sql, nil, nil, nil), is: SQLITE_OK)
        try claims.expect("there are some", sqlite3_changes(database) > 0, is: true)
    }
}

extension Claims {
    /// The code of the error that is thrown; nil where none is, or another kind.
    fileprivate func code(
        isolation: isolated (any Actor)? = #isolation, _ work: () async throws -> Void
    ) async -> LarderError.Code? {
        do { try await work() } catch { return (error as? LarderError)?.code }
        return nil
    }
}
