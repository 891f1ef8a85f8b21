import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite(
    "The migration lock", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct LockTests {
    @Test("A caller that waits past the deadline learns which process holds the lock, and takes it from no stopped one")
    func stopped() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let holder = try MigrateProcess.Running("larder-crash", [fixture.store.path, "hold"])
            defer { holder.kill() }
            try await holder.wait(forLine: "holding")
            holder.kill(SIGSTOP)
            let outcome = try await fixture.migrate("up", "--json", "--timeout", "0.3")
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains(#""code":"operations.migrationLocked""#))
            #expect(outcome.errors.contains("pid \(holder.process.processIdentifier), thread"))
            #expect(outcome.errors.contains(", hold, since "))
            #expect(try fixture.value("SELECT max(number) FROM migration") == "2")
            let status = try await fixture.migrate("status")
            #expect(status.output.contains("locked         by pid \(holder.process.processIdentifier)"))
        }
    }

    @Test("Of two runs of up that wait for the lock together, the later one finds nothing left to do")
    func waitingTogether() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            let runs = (0..<2).map { _ in Task { try await fixture.migrate("up", "--json", "--timeout", "60") } }
            // Both have made a plan by then, and wait.
            try await Task.sleep(for: .seconds(1))
            lock.release()
            var counts: [Int?] = []
            for run in runs {
                let outcome = try await run.value
                #expect(outcome.status == 0, "\(outcome.errors)")
                let steps = try result(outcome)["steps"] as? [Any]
                counts.append(steps?.count)
            }
            #expect(counts.contains(0) && counts.contains { $0 ?? 0 > 0 }, "\(counts)")
        }
    }

    @Test("A killed holder's lock is free at once")
    func killed() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let holder = try MigrateProcess.Running("larder-crash", [fixture.store.path, "hold"])
            try await holder.wait(forLine: "holding")
            holder.kill()
            _ = try await holder.finish()
            #expect(try await fixture.migrate("up", "--timeout", "0").status == 0)
        }
    }

    @Test("up waits for no lock where nothing is to be done")
    func nothingToDo() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            defer { lock.release() }
            let outcome = try await fixture.migrate("up", "--timeout", "0")
            #expect(outcome.status == 0 && outcome.output == "nothing was to be done\n", "\(outcome.errors)")
        }
    }

    @Test("A verb that changes the store waits for the lock as long as --timeout says, and then changes nothing")
    func verbs() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            let backup = try await fixture.makeBackup().path
            let others = fixture.folder.path + "/others"
            for _ in 0..<2 { #expect(try await fixture.migrate("backup", "--to", others).status == 0) }
            let before = try await fixture.migrate("env", "list").output
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            defer { lock.release() }
            for verb in [
                ["env", "add", "new", "--url", "https://new.example/"], ["env", "use", "staging"], ["env", "none"],
                ["env", "remove", "other"], ["env", "forget", "other", "--confirm", "other"], ["backup"],
                ["restore", backup], ["repair", "--write"], ["baseline"],
                ["backup", "prune", "--keep", "1", "--backups", others, "--write"],
            ] {
                let outcome = try await MigrateProcess.run(
                    verb + ["--timeout", "0", "--json", "--store", fixture.store.path])
                #expect(outcome.status == 1 && outcome.output == "", "\(verb): \(outcome)")
                #expect(outcome.errors.contains(#""code":"operations.migrationLocked""#), "\(verb): \(outcome.errors)")
            }
            #expect(try await fixture.migrate("env", "list").output == before)
            #expect(try fixture.backup().path == backup)
        }
    }

    @Test("A thread that holds the lock and stops is named by the waiter's error")
    func thread() async throws {
        try await MigrationFixture.with { fixture in
            let (held, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let store = fixture.store
            let thread = Thread {
                // Foundation loses a name that a thread is given before the call that makes it has returned.
                while Thread.current.name != "switcher" { Thread.current.name = "switcher" }
                let lock = try? MigrationLock.take(in: store, for: "a switch", within: .seconds(300))
                held.signal()
                release.wait()
                lock?.release()
            }
            thread.start()
            held.wait()
            defer { release.signal() }
            let error =
                try await requireEnd(naming: "switcher, a switch, since ") { _ in
                    _ = try MigrationLock.take(in: store, for: "up", within: .milliseconds(50))
                } as? OperationsError
            #expect(error?.code == .migrationLocked)
            #expect(error?.message.contains("pid \(ProcessInfo.processInfo.processIdentifier), thread") == true)
        }
    }

    @Test("Opening a store that has to be migrated waits for the lock, no longer than it is told")
    func opening() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            var options = OperationsDatabase.Options()
            options.busyTimeout = .milliseconds(50)
            let error = #expect(throws: OperationsError.self) {
                _ = try OperationsDatabase(folder: fixture.store, options: options)
            }
            #expect(error?.code == .migrationLocked)
            lock.release()
            try OperationsDatabase(folder: fixture.store, options: options).close()
            // Nothing is to be migrated now.
            let again = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            try OperationsDatabase(folder: fixture.store, options: options).close()
            again.release()
        }
    }

    @Test("A verb waits for another process that writes larder.sqlite as long as --timeout says")
    func writing() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let place = fixture.store.appending(path: "larder.sqlite").path
            let writer = try DatabaseQueue(path: place, configuration: configuration)
            func execute(_ sql: String) throws { try writer.writeWithoutTransaction { try $0.execute(sql: sql) } }
            try execute("BEGIN IMMEDIATE")
            let adding = try MigrateProcess.Running(
                "larder-migrate",
                [
                    "env", "add", "other", "--url", "https://other.example/", "--timeout", "300", "--store",
                    fixture.store.path,
                ])
            defer { adding.kill() }
            let deadline = SuspendingClock.now + .seconds(60)
            while MigrationLock.holder(in: fixture.store) == nil, adding.process.isRunning, .now < deadline {
                try await Task.sleep(for: .milliseconds(10))
            }
            // Another verb, which waits longer than the usual five seconds, tells when these are over.
            let other = try await fixture.migrate("env", "none", "--timeout", "7")
            #expect(other.status == 1, "\(other.errors)")
            try execute("ROLLBACK")
            try writer.close()
            let added = try await adding.finish()
            #expect(added.status == 0, "\(added.errors)")
        }
    }

    @Test("The migration lock names the verb of larder-migrate that took it")
    func namedVerb() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            _ = try await fixture.makeBackup()
            let note = try String(contentsOf: fixture.store.appending(path: "locks/migrate"), encoding: .utf8)
            #expect(note.contains(", larder-migrate backup, since "), "\(note)")
        }
    }
}
