import Foundation
import Testing

@testable import LarderOperations

@Suite("Environments", .timeLimit(.minutes(10)))
struct EnvironmentTests {
    @Test("Another API under a name that is taken is refused, and said to succeed it takes its data over")
    func changed() async throws {
        try await withOperations { database in
            try await database.enter(environment("a", data: "one"), as: "pa")
            await expectFailure(.environmentChanged) {
                try await database.enter(environment("a", data: "two"), as: "unused", leaving: nil)
            }
            let moved = environment("a", data: "two", succeeds: .environment("a"))
            let report = try await database.enter(moved, as: "unused", leaving: nil)
            #expect(!report.isSwitch && report.to?.partition.name == "pa")
            #expect(try database.environments.find("a")?.fingerprints.data == "two")
            let destination = Destination(environment: moved, user: .guest, newName: "unused")
            #expect(try database.environments.standing(destination)?.name == "pa")
        }
    }

    @Test("A renamed bucket is noted, and signs no user out")
    func bucket() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), .user("u"), as: "pa")
            try await database.setSession("signedIn", of: "pa")
            try await database.enter(environment("a", storage: "other"), .last, as: "unused", leaving: nil)
            #expect(try database.environments.find("a")?.fingerprints.storage == "other")
            #expect(try database.session(of: "pa") == "signedIn")
        }
    }

    @Test("Another user pool signs users out, and leaves guests and data as they are")
    func pool() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "guest")
            try await database.setSession("guest", of: "guest")
            try await database.enter(environment("a"), .user("u"), as: "pu")
            try await database.setSession("signedIn", of: "pu")
            try await database.enter(environment("a", identity: "other"), .last, as: "unused", leaving: nil)
            #expect(try database.session(of: "pu") == "signedOut")
            #expect(try database.session(of: "guest") == "guest")
            #expect(try database.currentName == "pu")
        }
    }

    @Test("Another user pool signs out all users of its environment, and no user of another environment")
    func poolOfAll() async throws {
        try await withOperations { database in
            for (name, user) in [("a", "u"), ("a", "v"), ("b", "w")] {
                try await database.enter(environment(name), .user(user), as: "p\(user)")
                try await database.setSession("signedIn", of: "p\(user)")
            }
            try await database.enter(environment("a", identity: "other"), .user("u"), as: "unused")
            let states = try ["pu", "pv", "pw"].map { try database.session(of: $0) }
            #expect(states == ["signedOut", "signedOut", "signedIn"])
        }
    }

    @Test(
        "Another user pool ends a session whose tokens were refused before",
        arguments: ["userPoolTokensInvalid", "federatedTokensInvalid"])
    func poolOfRefused(state: String) async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), .user("u"), as: "pu")
            try await database.setSession(state, of: "pu")
            try await database.enter(environment("a", identity: "other"), .last, as: "unused", leaving: nil)
            #expect(try database.session(of: "pu") == "signedOut")
        }
    }

    @Test("A user stays signed in where the environment that succeeds another has the same user pool")
    func samePool() async throws {
        try await withOperations { database in
            try await database.enter(environment("old"), .user("u"), as: "pu")
            try await database.setSession("signedIn", of: "pu")
            let new = environment("new", succeeds: .environment("old"))
            try await database.enter(new, .last, as: "unused", leaving: nil)
            #expect(try database.environments.partition("pu")?.environment == "new")
            #expect(try database.session(of: "pu") == "signedIn")
        }
    }

    @Test("Of an environment's partitions the one is entered that was in use last, whichever was made last")
    func lastUsed() async throws {
        try await withOperations { database in
            for name in ["u", "v"] { try await database.enter(environment("a"), .user(name), as: "p" + name) }
            try await database.enter(environment("a"), .user("u"), as: "unused", at: after(60))
            try await database.enter(environment("b"), as: "pb", at: after(120))
            try await database.enter(environment("a"), .last, as: "unused", at: after(180))
            #expect(try database.currentName == "pu")
        }
    }

    @Test("An environment that succeeds another has the partitions of all its users, and of its guests")
    func succeedingAll() async throws {
        try await withOperations { database in
            let users: [(Destination.User, String)] = [(.user("u"), "pu"), (.user("v"), "pv"), (.guest, "pg")]
            for (user, name) in users { try await database.enter(environment("old"), user, as: name) }
            let new = environment("new", succeeds: .environment("old"))
            let report = try await database.enter(new, .last, as: "unused", leaving: nil)
            #expect(!report.isSwitch && report.to?.partition.name == "pg")
            let partitions = try database.environments.partitions()
            #expect(partitions.map(\.name) == ["pu", "pv", "pg"])
            #expect(partitions.map(\.environment) == ["new", "new", "new"])
        }
    }

    @Test("An environment that succeeds another has its partitions, the current one too")
    func succeeding() async throws {
        try await withOperations { database in
            try await database.enter(environment("old"), .user("u"), as: "pu")
            let new = environment("new", succeeds: .environment("old"))
            let destination = Destination(environment: new, user: .last, newName: "unused")
            // A cache from before there were environments is not taken over with it.
            let table = database.environments.knowing(unnamed: "main")
            let report = try await table.enter(destination, leaving: nil, now: noon)
            #expect(!report.isSwitch && report.to?.partition.name == "pu")
            #expect(report.to?.partition.environment == "new")
            #expect(try table.partitions().map(\.name) == ["pu"])
            #expect(try database.environments.standing(destination)?.name == "pu")
            try await database.environments.remove("old")
        }
    }

    @Test("Data kept before there were environments becomes the guest's of the environment that succeeds it")
    func unnamed() async throws {
        try await withOperations { database in
            let old = try await database.enqueue(draft(in: "main"))
            let new = environment("new", succeeds: .unnamed)
            try await database.enter(new, as: "unused", leaving: nil)
            #expect(try database.currentName == "main")
            try await database.complete(old)
        }
    }

    @Test("A user who signed in before there were environments is signed out by the one that succeeds the data")
    func unnamedSession() async throws {
        try await withOperations { database in
            _ = try await database.enqueue(draft(in: "main"))
            try await database.setSession("signedIn", of: "main")
            try await database.enter(environment("new", succeeds: .unnamed), as: "unused", leaving: nil)
            #expect(try database.currentName == "main")
            #expect(try database.session(of: "main") == "signedOut")
        }
    }

    @Test("Mutations queued before there were environments are not left without a word")
    func unnamedIsLeft() async throws {
        try await withOperations { database in
            let old = try await database.enqueue(draft(in: "main"))
            await expectFailure(.otherPartition) { try await database.enter(environment("a"), as: "pa", leaving: nil) }
            let report = try await database.enter(environment("a"), as: "pa", leaving: .carry)
            #expect(report.carried == 1 && report.from?.partition.name == "main")
            try await database.complete(old)
        }
    }

    @Test("Data kept before there were environments is left for no environment as any other, and not in silence")
    func unnamedIsLeftForNone() async throws {
        try await withOperations { database in
            _ = try await database.enqueue(draft(in: "main"))
            let report = try await database.environments.leave(.park, now: noon)
            #expect(report.from?.partition.name == "main")
            #expect(report.from?.after == SwitchReport.Work([.pending: 1]))
            await expectFailure(.parked) { _ = try await database.enqueue(draft(in: "main")) }
        }
    }

    @Test(
        "A user who is signed in stays so under an environment that signs users in as the one before it, and no other")
    func adoptedSessions() async throws {
        try await withOperations { database in
            try await database.enter(environment("old"), .user("u"), as: "pu")
            try await database.setSession("signedIn", of: "pu")
            try await database.enter(environment("new", succeeds: .environment("old")), .last, as: "x", leaving: nil)
            #expect(try database.session(of: "pu") == "signedIn")
            let other = environment("newer", identity: "other", succeeds: .environment("new"))
            try await database.enter(other, .last, as: "x", leaving: nil)
            #expect(try database.session(of: "pu") == "signedOut")
        }
    }

    @Test("An environment stays protected whatever a program says, until it is stored otherwise by itself")
    func protection() async throws {
        try await withOperations { database in
            guard case .draft(let guarded) = environment("a", isProtected: true),
                case .draft(let plain) = environment("a")
            else { return }
            try await database.environments.put(guarded, now: noon)
            try await database.enter(.draft(plain), as: "pa")
            #expect(try database.environments.find("a")?.isProtected == true)
            var redefined = plain
            redefined.definition = json(#"{"name":"a","note":"new"}"#)
            try await database.enter(.draft(redefined), as: "pa")
            #expect(try database.environments.find("a")?.definition == redefined.definition)
            #expect(try database.environments.find("a")?.isProtected == true)
            try await database.environments.put(plain, now: noon)
            #expect(try database.environments.find("a")?.isProtected == false)
        }
    }

    @Test("A program that protects its environment has it protected, though it is stored as the program says otherwise")
    func laterProtection() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let guarded = environment("a", isProtected: true)
            let destination = Destination(environment: guarded, user: .last)
            #expect(try database.environments.standing(destination) == nil)
            let report = try await database.enter(guarded, .last, as: "unused", leaving: nil)
            #expect(!report.isSwitch && report.to?.partition.name == "pa")
            #expect(try database.environments.find("a")?.isProtected == true)
            #expect(try database.environments.standing(destination)?.name == "pa")
        }
    }

    @Test("An environment does not take over a user's data where it has some of the same user")
    func occupied() async throws {
        try await withOperations { database in
            try await database.enter(environment("old"), as: "po")
            try await database.enter(environment("new"), as: "pn")
            await expectFailure(.occupied) {
                try await database.enter(environment("new", succeeds: .environment("old")), as: "unused", leaving: nil)
            }
            #expect(try database.environments.partition("po")?.environment == "old")
        }
    }

    @Test("A partition that has a dead letter alone, or an unsent upload alone, is not forgotten unasked")
    func forgettingUnsent() async throws {
        for isUpload in [true, false] {
            try await withOperations { database in
                try await database.enter(environment("a"), as: "pa")
                if isUpload {
                    try await database.transfers.enqueue([
                        TransferDraft(
                            partition: "pa", kind: .upload, bucket: "media", key: "k", path: "/file",
                            source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
                    ])
                } else {
                    try await database.setAside(try await database.enqueue(draft(in: "pa")))
                }
                try await database.enter(environment("b"), as: "pb")
                await expectFailure(.unsentWork) {
                    try await database.environments.forget(partitions: ["pa"], losingUnsent: false)
                }
                let forgotten = try await database.environments.forget(partitions: ["pa"], losingUnsent: true)
                #expect(forgotten.mutations == (isUpload ? 0 : 1))
            }
        }
    }

    @Test("A partition whose only mutation is answered has no unsent work, and is forgotten unasked")
    func answeredAlone() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let id = try await database.enqueue(draft(in: "pa"))
            try await database.mutations.answer(database.begin(id).attempt, json("{}"), now: noon)
            try await database.enter(environment("b"), as: "pb")
            let forgotten = try await database.environments.forget(partitions: ["pa"], losingUnsent: false)
            #expect(forgotten.mutations == 1)
            #expect(try database.environments.partitions().map(\.name) == ["pb"])
        }
    }

    @Test("A partition whose only work is a mutation in flight is not forgotten unasked")
    func forgettingInFlight() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let id = try await database.enqueue(draft(in: "pa"))
            _ = try await database.begin(id)
            try await database.enter(environment("b"), as: "pb")
            await expectFailure(.unsentWork) {
                try await database.environments.forget(partitions: ["pa"], losingUnsent: false)
            }
            #expect(try database.state(id) == .inFlight)
        }
    }

    @Test("Forgetting a partition removes its rows from every table and none of another's; a refused one removes none")
    func forgottenRows() async throws {
        try await withOperations { database in
            func fill(_ name: String) async throws {
                try await database.complete(try await database.enqueue(draft(in: name)))
                _ = try await database.enqueue(draft(in: name, temporaryIDs: [TemporaryID()]))
                try await database.transfers.enqueue([
                    TransferDraft(
                        partition: name, kind: .download, bucket: "media", key: name, path: "/copy of \(name)",
                        created: noon)
                ])
                _ = try await database.watchers.put("w", in: name, document: "{ a }", now: noon)
                try await database.pins.put("p", in: name, document: "{ a }", now: noon)
                let credential = SealedCredential(
                    kind: "userPool", identity: "i", sealed: json("c"), created: noon, updated: noon)
                let key = StoredPartitionKey(partition: name, sealedWith: "k1", sealed: json("key"), created: noon)
                func replacement(_ making: CredentialTable.KeyMaking? = nil) -> CredentialReplacement {
                    CredentialReplacement(
                        partition: name, credentials: [credential], key: key, making: making,
                        session: { _ in StoredSession(state: "signedIn", changed: noon) })
                }
                _ = try await database.credentials.replace(by: replacement(.init(now: noon)))
                _ = try await database.credentials.quarantine(replacement(), as: "damaged", now: noon)
            }
            let tables = [
                "mutation", "transfer", "temporary_id", "outcome", "watcher", "pin", "credential",
                "quarantined_credential", "session", "partition_key",
            ]
            func owners(_ table: String) throws -> [String] {
                try database.read { db in
                    try db.texts(
                        "SELECT DISTINCT p.name FROM \(table) t JOIN partition p ON p.id = t.partition ORDER BY p.name")
                }
            }
            for name in ["a", "b"] {
                try await database.enter(environment(name), as: "p\(name)")
                try await fill("p\(name)")
            }
            for table in tables { #expect(try owners(table) == ["pa", "pb"], "\(table)") }
            await expectFailure(.unsentWork) {
                try await database.environments.forget(partitions: ["pa"], losingUnsent: false)
            }
            await expectFailure(.environmentInUse) {
                try await database.environments.forget(partitions: ["pb"], losingUnsent: true)
            }
            for table in tables { #expect(try owners(table) == ["pa", "pb"], "\(table)") }
            try await database.environments.forget(partitions: ["pa"], losingUnsent: true)
            for table in tables { #expect(try owners(table) == ["pb"], "\(table)") }
            #expect(try database.environments.partitions().map(\.name) == ["pb"])
        }
    }

    @Test("Environments are listed by their names, and partitions in the order in which they were made")
    func listed() async throws {
        try await withOperations { database in
            for (name, partition) in [("b", "2"), ("c", "3"), ("a", "1")] {
                try await database.enter(environment(name), as: partition)
            }
            #expect(try database.environments.list().map(\.name) == ["a", "b", "c"])
            #expect(try database.environments.partitions().map(\.name) == ["2", "3", "1"])
        }
    }

    @Test("An environment is not removed while it is the current one, or has data")
    func removal() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            await expectFailure(.environmentInUse) { try await database.environments.remove("a") }
            try await database.enter(environment("b"), as: "pb")
            await expectFailure(.environmentInUse) { try await database.environments.remove("a") }
            await expectFailure(.unknownEnvironment) { try await database.environments.remove("c") }
            guard case .draft(let unused) = environment("unused") else { return }
            try await database.environments.put(unused, now: noon)
            try await database.environments.remove("unused")
            #expect(try database.environments.list().map(\.name) == ["a", "b"])
            await expectFailure(.unknownEnvironment) { try await database.enter(.stored("unused"), as: "x") }
        }
    }

    @Test("A sign-in changes nothing with credentials for another partition, or under another key than it has")
    func otherKey() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), .user("u"), as: "pu")
            try await database.enter(environment("a"), as: "guest")
            func replacement(
                _ text: String, keyFrom time: Date, making: CredentialTable.KeyMaking? = nil
            ) -> CredentialReplacement {
                let credential = SealedCredential(
                    kind: "userPool", identity: "i", sealed: json(text), created: noon, updated: noon)
                let key = StoredPartitionKey(
                    partition: "pu", sealedWith: "k1", sealed: json("key"), created: time)
                return CredentialReplacement(
                    partition: "pu", credentials: [credential], key: key, making: making,
                    session: { _ in StoredSession(state: "signedIn", changed: noon) })
            }
            let first = try await database.credentials.replace(
                by: replacement("old", keyFrom: noon, making: .init(now: noon)))
            #expect(first == .stored)
            for (user, time) in [("v", noon), ("u", after(1))] {
                let made = try await database.environments.enter(
                    Destination(environment: .stored("a"), user: .user(user), newName: "pv"), leaving: .park,
                    signingIn: replacement("new", keyFrom: time), now: noon)
                #expect(made.outcome == .otherKey && made.report == nil, "\(user)")
                #expect(try database.currentName == "guest")
                #expect(try database.environments.partitions().map(\.name) == ["pu", "guest"])
                #expect(try database.credentials.snapshot(of: "pu").credentials.map(\.sealed) == [json("old")])
            }
        }
    }

    @Test("Forgetting an environment counts the mutations of all its users")
    func forgottenMutations() async throws {
        try await withOperations { database in
            for user in ["ada", "bob"] {
                try await database.enter(environment("a"), .user(user), as: user)
                _ = try await database.enqueue(draft(in: user))
            }
            try await database.enter(environment("b"), as: "other")
            let forgotten = try await database.environments.forget(environment: "a", losingUnsent: true)
            #expect(forgotten.mutations == 2)
        }
    }

    @Test("The owners of partitions stand in the order in which the partitions were made")
    func owners() async throws {
        try await withOperations { database in
            try await database.enter(environment("b"), as: "z")
            try await database.enter(environment("a"), as: "y")
            let owners = try database.partitionOwners()
            #expect(owners.map { $0.name } == ["z", "y"])
            #expect(owners.map { $0.environment } == ["b", "a"])
        }
    }

    @Test("Unsent work of another partition keeps none from being forgotten")
    func forgettingBesideUnsent() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            try await database.enter(environment("b"), as: "pb")
            let id = try await database.enqueue(draft(in: "pb"))
            let forgotten = try await database.environments.forget(partitions: ["pa"], losingUnsent: false)
            #expect(forgotten.partitions == ["pa"] && forgotten.mutations == 0)
            #expect(try database.state(id) == .pending)
        }
    }

    @Test("An environment that succeeds another takes over no partition of a third")
    func succeedingOne() async throws {
        try await withOperations { database in
            try await database.enter(environment("third"), .user("w"), as: "pw")
            try await database.enter(environment("old"), .user("u"), as: "pu")
            let new = environment("new", succeeds: .environment("old"))
            try await database.enter(new, .last, as: "unused", leaving: nil)
            #expect(try database.environments.partitions().map(\.environment) == ["third", "new"])
        }
    }

    @Test("The refusal to forget a partition says how many mutations and uploads the server does not have")
    func countedUnsent() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            for _ in 0..<2 { _ = try await database.enqueue(draft(in: "pa")) }
            try await database.transfers.enqueue([
                TransferDraft(
                    partition: "pa", kind: .upload, bucket: "media", key: "k", path: "/file",
                    source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
            ])
            try await database.enter(environment("b"), as: "pb")
            let refusal = await failure {
                try await database.environments.forget(partitions: ["pa"], losingUnsent: false)
            }
            #expect(refusal?.code == .unsentWork)
            #expect(refusal?.unsent?.mutations == 2 && refusal?.unsent?.uploads == 1)
        }
    }
}

extension OperationsDatabase {
    fileprivate func setSession(_ state: String, of partition: String) async throws {
        try await write { db in
            try db.run(
                """
                INSERT INTO session (partition, state, changed) SELECT id, ?, 0 FROM partition WHERE name = ?
                """, [state, partition])
        }
    }

    fileprivate func session(of partition: String) throws -> String? {
        try read { db in
            try db.texts(
                "SELECT s.state FROM session s JOIN partition p ON p.id = s.partition WHERE p.name = ?", [partition]
            ).first
        }
    }
}
