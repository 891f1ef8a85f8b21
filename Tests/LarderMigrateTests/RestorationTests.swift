import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite("Restoring", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"))
struct RestorationTests {
    @Test("A mutation that is pending in the backup and was settled since is not sent again; its outcome stays")
    func settledSince() async throws {
        try await Cellar.with { cellar in
            try await cellar.write(7)
            let ids = try await cellar.queue(3)
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            try await cellar.settle(ids[0])
            let later = try await cellar.queue(1, named: "later")
            let outcome = try await cellar.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["mutations"]) == #"{"kept":2,"restored":0,"setAside":0,"settledSince":1}"#)
            // What was queued since is not lost either.
            #expect(try await cellar.mutations() == [ids[1], ids[2]] + later)
            try await cellar.withDatabase { database in
                guard case .settled(let outcome) = try database.mutations.find(ids[0]) else {
                    Issue.record("the outcome is gone")
                    return
                }
                #expect(outcome.kind == .applied)
            }
            try await cellar.expectSound()
        }
    }

    @Test("What the store has lost comes back, at its place; what was in flight is set aside, as nobody knows its end")
    func lost() async throws {
        try await Cellar.with { cellar in
            let ids = try await cellar.queue(3)
            try await cellar.withDatabase { database in
                _ = try await database.mutations.begin(ids[1], owner: "somebody", now: Date())
            }
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            try cellar.execute("DELETE FROM mutation")
            let outcome = try await cellar.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            try await cellar.withDatabase { database in
                let restored = try database.mutations.list()
                #expect(restored.map(\.id) == ids)
                #expect(restored.map(\.state) == [.pending, .deadLetter, .pending])
                #expect(restored[1].failure?.class == .outcomeUnknown)
            }
            try await cellar.expectSound()
        }
    }

    @Test("A mutation that was settled so long ago that its outcome is forgotten is not sent again, but set aside")
    func forgottenOutcome() async throws {
        try await Cellar.with { cellar in
            let ids = try await cellar.queue(2)
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            try await cellar.settle(ids[0])
            // As if as many had been queued meanwhile.
            try cellar.execute("UPDATE sqlite_sequence SET seq = seq + \(Outcome.kept) WHERE name = 'mutation'")
            let later = try await cellar.queue(1, named: "later")
            try await cellar.settle(later[0])
            let pruned = try await cellar.withDatabase {
                try await $0.mutations.prune(keeping: Outcome.kept, in: Store.unnamedPartition)
            }
            #expect(pruned == 1)
            let outcome = try await cellar.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["mutations"])
                == #"{"kept":1,"restored":1,"setAside":1,"settledSince":0}"#)
            try await cellar.withDatabase { database in
                let restored = try database.mutations.list()
                #expect(restored.map(\.id) == ids)
                #expect(restored.map(\.state) == [.deadLetter, .pending])
                #expect(restored[0].failure?.class == .outcomeUnknown)
            }
            try await cellar.expectSound()
        }
    }

    @Test("The cache becomes what it was while another process reads and writes; nothing that it queued is lost")
    func whileUsed() async throws {
        try await Cellar.with { cellar in
            try await cellar.write(7)
            try await cellar.queue(1)
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            try await cellar.write(8)
            let user = try MigrateProcess.Running("larder-migrate-crash", [cellar.store.path, "use"])
            defer { user.kill() }
            try await user.wait(forLine: "reads 8")
            for _ in 0..<3 {
                let outcome = try await cellar.restore(backup)
                #expect(outcome.status == 0, "\(outcome.errors)")
            }
            try await user.wait { lines in lines.last { $0.hasPrefix("reads") } == "reads 7" }
            let count = user.lines.count
            try await user.wait { $0.count > count + 20 }
            #expect(user.process.isRunning)
            user.kill()
            let said = try await user.finish()
            #expect(said.errors == "")
            let queued = said.output.split(separator: "\n").filter { $0.hasPrefix("queued ") }
                .map { String($0.dropFirst("queued ".count)) }
            let known = Set(try await cellar.mutations().map(\.uuidString))
            #expect(queued.count > 20 && queued.allSatisfy(known.contains))
            #expect(try await cellar.number() == 7)
            try await cellar.expectSound()
        }
    }

    @Test("A killed restoration leaves the store wholly before or wholly after",
        arguments: ["backedUp", "staged", "committed", "cache(named)", "cache(superseded)"])
    func killed(step: String) async throws {
        try await Cellar.with { cellar in
            try await cellar.write(7)
            let ids = try await cellar.queue(2)
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            try await cellar.write(8)
            try cellar.execute("DELETE FROM mutation")
            let killed = try await MigrateProcess.crash(cellar.store.path, "restore", backup.path, step)
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            let isAfter = !["backedUp", "staged"].contains(step)
            #expect(try await cellar.number() == (isAfter ? 7 : 8))
            #expect(try await cellar.mutations() == (isAfter ? ids : []))
            try await cellar.expectSound("\(step)")
            // Once more, and all of it.
            try await cellar.write(9)
            #expect(try await cellar.restore(backup).status == 0)
            #expect(try await cellar.number() == 7)
            #expect(try await cellar.mutations() == ids)
            #expect(try cellar.leftovers() == [])
            try await cellar.expectSound()
        }
    }

    @Test("A restoration into a new folder that was killed can be made again",
        arguments: ["staged", "committed", "cache(named)"])
    func killedInNewFolder(step: String) async throws {
        try await Cellar.with { cellar in
            try await cellar.write(7)
            let ids = try await cellar.queue(2)
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            let new = Cellar(folder: cellar.folder.appending(path: "new"))
            try FileManager.default.createDirectory(at: new.folder, withIntermediateDirectories: true)
            let killed = try await MigrateProcess.crash(new.store.path, "restore", backup.path, step)
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            let again = try await new.restore(backup)
            #expect(again.status == 0, "\(again.errors)")
            #expect(try await new.number() == 7)
            #expect(try await new.mutations() == ids)
            #expect(try new.leftovers() == [])
            try await new.expectSound()
        }
    }

    @Test("What is there is backed up before, so that a restoration can be taken back")
    func takenBack() async throws {
        try await Cellar.with { cellar in
            try await cellar.write(7)
            try await cellar.queue(1)
            #expect(try await cellar.migrate("backup", "--to", cellar.folder.path + "/first").status == 0)
            try await cellar.write(8)
            let first = cellar.folder.appending(path: "first")
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: first.path).first)
            #expect(try await cellar.restore(first.appending(path: name)).status == 0)
            #expect(try await cellar.number() == 7)
            #expect(try await cellar.restore(try cellar.backup()).status == 0)
            #expect(try await cellar.number() == 8)
        }
    }

    @Test("A lost database comes back whole, and the caches beside it stay as the backup has them")
    func lostDatabase() async throws {
        try await Cellar.with { cellar in
            try await cellar.write(7)
            let ids = try await cellar.queue(2)
            #expect(try await cellar.migrate("backup").status == 0)
            let backup = try cellar.backup()
            try await cellar.write(8)
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: cellar.store.path + "/larder.sqlite" + suffix)
            }
            let outcome = try await cellar.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await cellar.mutations() == ids)
            #expect(try await cellar.number() == 7)
            try await cellar.expectSound()
        }
    }
}
