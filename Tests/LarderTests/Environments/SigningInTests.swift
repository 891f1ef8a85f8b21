import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

private func tokens(_ number: Int, id: String = "id") -> Credentials {
    Credentials(userPool: .init(idToken: id, accessToken: "access", refreshToken: "\(number)", expires: nil))
}

/// Of the user 7a-3f.
private let idToken = "e30." + Data(#"{"sub":"7a-3f"}"#.utf8).base64EncodedString().replacing("=", with: "") + ".x"

/// Runs `body` with a new store in which a guest works.
private func withGuest(
    _ options: Store.Options = Store.Options(), _ body: (Store, Partition) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let store = try Store.open(
            at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
        try await body(store, try store.partition(of: backend("a")))
        try store.close()
    }
}

@Suite("Signing in and switching in one step", .timeLimit(.minutes(10)))
struct SigningInTests {
    @Test("A user who signs in works in a partition of his or her own, which has the credentials")
    func signingIn() async throws {
        try await withGuest { store, guest in
            let change = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon)
            #expect(try store.current()?.user == .user("ada"))
            let session = try change.partition.session
            #expect(session.state == .signedIn)
            #expect(try await session.storedCredentials(within: soon) == .present(tokens(1)))
            #expect(throws: LarderError.self) { try guest.session }
        }
    }

    @Test("The caller says what becomes of the guest's queue", arguments: PendingWork.allCases)
    func pendingWork(_ work: PendingWork) async throws {
        try await withGuest { store, guest in
            try await guest.enqueue(giveStars("1", 4))
            let change = try await store.signIn(tokens(1), as: "ada", pending: work, within: soon)
            #expect(change.left?.after.pending == (work == .park ? 1 : 0))
            #expect(change.carried == (work == .carry ? 1 : 0))
            #expect(change.discarded == (work == .discard ? 1 : 0))
            #expect(try change.partition.mutations().count == (work == .carry ? 1 : 0))
        }
    }

    @Test("What another user has queued stays with that user, whatever is said of it", arguments: PendingWork.allCases)
    func anothersWork(_ work: PendingWork) async throws {
        try await withGuest { store, _ in
            let ada = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
            try await ada.enqueue(giveStars("1", 4))
            try await ada.session.signOut(within: soon)
            let change = try await store.signIn(tokens(2), as: "bob", pending: work, within: soon)
            #expect(change.left?.after.pending == 1 && change.carried == 0 && change.discarded == 0)
            #expect(try change.partition.mutations().isEmpty)
        }
    }

    @Test("A partition's identity is printed as its environment and its user")
    func printedIdentity() async throws {
        try await withGuest { store, _ in
            _ = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon)
            #expect(try store.partitionIdentities().map { "\($0)" }.sorted() == ["a, ada", "a, guest"])
        }
        #expect("\(PartitionIdentity(name: "main", environment: nil, user: .guest))" == "no environment")
        #expect("\(PartitionUser.guest)" == "guest" && "\(PartitionUser.user("ada"))" == "ada")
    }

    @Test("A user who is not named is the subject of the id token, and one who is named is not")
    func subject() async throws {
        try await withGuest { store, _ in
            _ = try await store.signIn(tokens(1, id: idToken), pending: .park, within: soon)
            #expect(try store.current()?.user == .user("7a-3f"))
            _ = try await store.signIn(tokens(3, id: idToken), as: "ada", pending: .park, within: soon)
            #expect(try store.current()?.user == .user("ada"))
            await expectCode(.sessionState) {
                _ = try await store.signIn(tokens(2), pending: .park, within: soon)
            }
        }
    }

    @Test("A user whose name is empty is refused, and is not the subject of the id token")
    func emptyName() async throws {
        try await withGuest { store, _ in
            await expectCode(.environment) {
                _ = try await store.signIn(tokens(1, id: idToken), as: "", pending: .park, within: soon)
            }
            let user = try store.current()?.user
            #expect(user == .guest)
        }
    }

    @Test("Credentials with nothing in them sign no user in, whoever is named")
    func nothing() async throws {
        try await withGuest { (store, guest) async throws in
            await expectCode(.sessionState) {
                _ = try await store.signIn(Credentials(), as: "ada", pending: .park, within: soon)
            }
            #expect(try store.current()?.user == .guest)
            #expect(try guest.session.state == .signedOut)
        }
    }

    @Test("A user of an identity pool alone is signed in under the name that the program gives, and under no other")
    func cloudAlone() async throws {
        try await withGuest { store, _ in
            let cloud = Credentials(
                cloud: .init(identityID: "region:7", accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture))
            await expectCode(.sessionState) { _ = try await store.signIn(cloud, pending: .park, within: soon) }
            #expect(try store.current()?.user == .guest)
            let app = try await store.signIn(cloud, as: "ada", pending: .park, within: soon).partition
            #expect(try store.current()?.user == .user("ada"))
            #expect(try app.session.state == .signedIn)
            #expect(try await app.session.storedCredentials(within: soon) == .present(cloud))
        }
    }

    @Test("Tokens that another library has left are not taken over in another user's partition")
    func adoption() async throws {
        try await withGuest { store, _ in
            let environment = try WrittenConfiguration.environment("staging")
            let app = try await store.switch(to: environment, user: .user("bob")).partition
            let legacy = AdoptionTests.legacy()
            #expect(try await app.session.adopt(legacy, of: environment, within: soon) == .quarantined)
            #expect(try await app.session.storedCredentials(within: soon) == .absent)
            let own = try await store.switch(toUser: .user("sub"), pending: .park).partition
            #expect(try await own.session.adopt(legacy, as: "sub", of: environment, within: soon) == .adopted)
        }
    }

    @Test("Tokens that another library has left are their subject's where the program names no user")
    func adoptedSubject() async throws {
        try await withGuest { store, _ in
            let environment = try WrittenConfiguration.environment("staging")
            let app = try await store.switch(to: environment, user: .user("7a")).partition
            let outcome = try await app.session.adopt(AdoptionTests.legacy(), of: environment, within: soon)
            #expect(outcome == .adopted)
        }
    }

    @Test("A sign-in for which no key can be had switches nothing")
    func lockedKeys() async throws {
        let keys = InMemoryKeyProvider()
        var options = Store.Options()
        options.keys = keys
        try await withGuest(options) { store, guest in
            keys.behaviour = .locked
            await expectCode(.init(rawValue: "keys.locked")) {
                _ = try await store.signIn(tokens(1), as: "ada", pending: .discard, within: soon)
            }
            let (user, partitions) = (try store.current()?.user, try store.partitionIdentities())
            let state = try guest.session.state
            #expect(user == .guest && partitions.count == 1 && state == .signedOut)
        }
    }

    @Test("A sign-in and a change of keys wait for a key provider as long as the session's options say")
    func silentKeys() async throws {
        let keys = InMemoryKeyProvider()
        var options = Store.Options()
        options.keys = keys
        options.session.keyTimeout = .milliseconds(20)
        try await withGuest(options) { (store, _) async throws in
            keys.behaviour = .hanging
            let errors = [
                await #expect(throws: LarderError.self) {
                    _ = try await store.signIn(tokens(1), as: "ada", pending: .park)
                }, await #expect(throws: LarderError.self) { _ = try await store.rotateKeys() },
            ]
            for error in errors { #expect([.keysTimedOut, .timedOut].contains(error?.code), "\(error as Any)") }
            keys.behaviour = .ready
            #expect(try store.current()?.user == .guest)
        }
    }

    @Test("The program is asked for the identity provider of the session's own environment and user")
    func providerOfPartition() async throws {
        let asked = Mutex<Set<String>>([])
        var options = Store.Options()
        options.identityProvider = { identity in
            asked.withLock { _ = $0.insert("\(identity)") }
            return nil
        }
        try await withGuest(options) { store, guest in
            _ = try guest.session
            #expect(asked.withLock { $0 } == ["a, guest"])
            _ = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition.session
            #expect(asked.withLock { $0 } == ["a, guest", "a, ada"])
        }
    }

    @Test("The user who is at work signs in again in the same partition, and waiting callers go on")
    func again() async throws {
        try await withGuest { store, _ in
            let app = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
            let (session, name) = (try app.session, try store.current()?.name)
            try await session.signOut(within: soon)
            async let waiting: Void = session.signedIn(within: .seconds(300))
            let change = try await store.signIn(tokens(2), as: "ada", pending: .discard, within: soon)
            try await waiting
            #expect(change.left == nil && change.entered.partition.name == name)
            #expect(try await session.storedCredentials(within: soon) == .present(tokens(2)))
        }
    }

    @Test("The readers of a session's state are told when its user signs in again by the store")
    func toldAgain() async throws {
        try await withGuest { store, _ in
            let app = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
            let session = try app.session
            try await session.signOut(within: soon)
            var changes = session.changes.makeAsyncIterator()
            #expect(try await next(&changes) == .signedOut)
            _ = try await store.signIn(tokens(2), as: "ada", pending: .park, within: soon)
            #expect(try await next(&changes, within: .seconds(20)) == .signedIn)
        }
    }

    @Test("A guest's partition in which a user has signed in stays a guest's: its queue goes along with the next user")
    func userOfGuestsPartition() async throws {
        try await withGuest { store, guest in
            try await guest.session.signIn(tokens(1), within: soon)
            #expect(try store.current()?.user == .guest)
            try await guest.enqueue(giveStars("1", 4))
            let change = try await store.signIn(tokens(2), as: "ada", pending: .carry, within: soon)
            #expect(change.carried == 1 && change.left?.after.pending == 0)
            #expect(try change.partition.mutations().count == 1)
        }
    }

    @Test("A guest's session and credentials are there still when the program comes back from a user who signed in")
    func keptGuest() async throws {
        try await withGuest { store, guest in
            let given = Credentials(cloud: .init(accessKeyID: "AK", secretAccessKey: "s", expires: .distantFuture))
            try await guest.session.accept(given, as: .guest, within: soon)
            _ = try await store.signIn(tokens(1), as: "ada", pending: .carry, within: soon)
            let back = try await store.switch(toUser: .guest, pending: .park).partition
            #expect(try back.session.state == .guest)
            #expect(try await back.session.storedCredentials(within: soon) == .present(given))
        }
    }

    @Test("A user is still signed in when the program comes back from another user who signed in")
    func keptUser() async throws {
        try await withGuest { store, _ in
            _ = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon)
            _ = try await store.signIn(tokens(2), as: "bob", pending: .park, within: soon)
            let back = try await store.switch(toUser: .user("ada"), pending: .park).partition
            #expect(try back.session.state == .signedIn)
            #expect(try await back.session.storedCredentials(within: soon) == .present(tokens(1)))
        }
    }

    @Test("Transfers of another user stay with that user, whatever is said of them", arguments: PendingWork.allCases)
    func anothersTransfers(_ work: PendingWork) async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "photo")
            try Data([1]).write(to: file)
            try await withGuest { store, _ in
                let ada = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
                let upload = try await ada.transfers.upload(file, to: .init(bucket: "b", key: "k"))
                let change = try await store.signIn(tokens(2), as: "bob", pending: work, within: soon)
                #expect(try change.partition.transfers.list().isEmpty)
                let back = try await store.switch(toUser: .user("ada"), pending: .park).partition
                #expect(try back.transfers.list(in: [.pending]).map(\.id) == [upload.id])
            }
        }
    }

    @Test("A session takes the credentials that it is given, whichever user they name, and switches nothing")
    func anyUser() async throws {
        try await withGuest { store, _ in
            let app = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
            let given = tokens(2, id: idToken)
            try await app.session.signIn(given, within: soon)
            #expect(try await app.session.storedCredentials(within: soon) == .present(given))
            #expect(try store.current()?.user == .user("ada"))
        }
    }

    @Test("Signing out leaves the program in the user's partition, signed out, and leads to no guest by itself")
    func signingOut() async throws {
        try await withGuest { store, _ in
            let app = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
            try await app.session.signOut(within: soon)
            #expect(try app.session.state == .signedOut && store.current()?.user == .user("ada"))
            let guest = try await store.switch(toUser: .guest, pending: .park).partition
            #expect(try guest.session.state == .signedOut)
        }
    }

    @Test("A program that names no environment has one partition, and is told to choose one first")
    func withoutEnvironment() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            await expectCode(.noEnvironment) {
                _ = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon)
            }
            try store.close()
        }
    }

    @Test("The partition of a user who signs in asks the server that the call names")
    func server() async throws {
        try await withGuest { store, _ in
            let server = ScriptedServer.rating()
            let change = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon, server: server)
            try await change.partition.enqueue(giveStars("1", 4))
            try await quickRunner(change.partition).drain()
            #expect(server.effects == ["1 4"])
        }
    }

    @Test("A sign-in waits for a key provider as long as the call says, whatever the options say")
    func namedTime() async throws {
        let keys = InMemoryKeyProvider(MasterKeys(current: MasterKey()))
        var options = Store.Options()
        options.keys = keys
        options.session.keyTimeout = .milliseconds(1)
        try await withGuest(options) { store, _ in
            keys.behaviour = .slow(.milliseconds(50))
            let app = try await store.signIn(tokens(1), as: "ada", pending: .park, within: soon).partition
            #expect(try app.session.state == .signedIn)
        }
    }

    @Test("A switch to another user is refused while no environment is chosen")
    func switchWithoutEnvironment() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            await expectCode(.noEnvironment) { _ = try await store.switch(toUser: .user("ada"), pending: .park) }
            try store.close()
        }
    }
}

@Suite(
    "The process is killed while it signs in", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct KilledSignInTests {
    private static let schema = """
        type Recipe { id: ID! stars: Int! note: String }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    /// What is stored: whose partition is the current one, and which credentials the users have.
    private struct Standing: Equatable {
        var user: String?
        var numbers: [String: Int] = [:]
    }

    @Test(
        "After kill -9 at any step of a sign-in everything is as before, or the user is signed in",
        arguments: EnvironmentSwitch.KillPoint.allCases)
    func killed(step: EnvironmentSwitch.KillPoint) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            var known = Standing()
            var queued: Set<String> = []
            for times in 1...6 {
                let seed = (TestSeed.of("\(step) sign-in", times) >> 10) * 1_000 + UInt64(times)
                let output = folder.appending(path: "said")
                let child = try ChildProgram.start(
                    place, "sign-in", "\(seed)", step.rawValue, "\(times)", output: output)
                await child.ended()
                #expect(child.terminationReason == .uncaughtSignal, "it ended by itself, seed \(seed)")
                var next: Standing?
                for line in try ChildProgram.lines(of: output) {
                    let words = line.split(separator: " ").map(String.init)
                    switch words.first {
                    case "queued": queued.insert(words[1])
                    case "signing":
                        var standing = known
                        (standing.user, standing.numbers[words[1]]) = (words[1], Int(words[2]))
                        next = standing
                    case "signed": (known, next) = (next ?? known, nil)
                    default: Issue.record("it said \(line)")
                    }
                }
                let found = try await look(place, queued)
                #expect(found == known || found == next, "seed \(seed)")
                known = found
            }
            #expect(!known.numbers.isEmpty && !queued.isEmpty)
        }
    }

    private func look(_ place: URL, _ queued: Set<String>) async throws -> Standing {
        let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema))
        let current = try store.current()
        #expect(try store.operationsDatabase().check().problems == [])
        let there = try store.operationsDatabase().mutations.list().map { "\(MutationID($0.id))" }
        #expect(Set(there).count == there.count && queued.isSubset(of: there))
        var found = Standing(user: current?.user.id)
        for identity in try store.partitionIdentities() {
            guard let user = identity.user.id else { continue }
            let session = try await store.switch(toUser: identity.user, pending: .park).partition.session
            // A user's partition without credentials would be half a sign-in.
            guard case .present(let credentials) = try await session.storedCredentials(within: soon) else {
                Issue.record("\(user) has a partition and no credentials")
                continue
            }
            #expect(session.state == .signedIn)
            found.numbers[user] = credentials.userPool?.refreshToken.flatMap(Int.init)
        }
        if let current { _ = try await store.switch(toUser: current.user, pending: .park) }
        try store.close()
        return found
    }
}
