import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite(
    "The article on the command line about larder-migrate --json",
    .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct DocumentedMigrationTests {
    /// Runs verbs on a fixture, and compares what they print.
    private final class Verbs {
        let fixture: MigrationFixture
        var documented: DocumentedResults

        init(_ fixture: MigrationFixture) throws { (self.fixture, documented) = (fixture, try DocumentedResults()) }

        @discardableResult
        func run(
            _ row: String, _ arguments: [String], status: Int32 = 0, environment: [String: String] = [:]
        ) async throws -> [String: Any] {
            let outcome = try await MigrateProcess.run(
                arguments + ["--json", "--store", fixture.store.path], environment: environment, in: fixture.folder)
            #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
            try documented.compare(row, outcome.output)
            return try result(outcome)
        }
    }

    private func withVerbs(_ body: (Verbs) async throws -> Void) async throws {
        try await MigrationFixture.with { fixture in
            let verbs = try Verbs(fixture)
            try await body(verbs)
            verbs.documented.finish()
            #expect(verbs.documented.problems == [])
        }
    }

    @Test("Status tells who holds the lock, what is pending, and what is damaged, as it is documented")
    func status() async throws {
        try await withVerbs { verbs in
            let fixture = verbs.fixture
            try fixture.makeOlder()
            try await fixture.addCache()
            let holder = try MigrateProcess.Running("larder-crash", [fixture.store.path, "hold"])
            defer { holder.kill() }
            try await holder.wait(forLine: "holding")
            let held = try await verbs.run("`status`", ["status"], status: 3)["lockHolder"] as? String
            #expect(held?.hasPrefix("pid \(holder.process.processIdentifier), ") == true, "\(held as Any)")
            holder.kill()
            _ = try await holder.finish()
            #expect(try await verbs.run("`status`", ["status"], status: 3)["lockHolder"] is NSNull)
            try fixture.damageCache()
            try await verbs.run("`status`", ["status"], status: 3)
        }
    }

    @Test(
        "Planning, migrating, validating, backing up, restoring and repairing print what is documented, and all of it")
    func work() async throws {
        try await withVerbs { verbs in
            let fixture = verbs.fixture
            try fixture.makeOlder(migrations: 3)
            try fixture.execute("DROP TABLE migration; PRAGMA application_id = 0; PRAGMA user_version = 0")
            try await verbs.run("`baseline`", ["baseline"])
            try await fixture.addCache()
            try fixture.markCache(format: 0)
            try await verbs.run("`plan`, `up`", ["plan"], status: 3)
            try await verbs.run("`plan`, `up`", ["up"])
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: fixture.store.path)
            try await verbs.run("`validate`", ["validate"])
            let to = fixture.folder.appending(path: "to").path
            let backup = try await verbs.run("`backup`", ["backup", "--to", to])["backup"] as? String
            try await verbs.run("`restore`", ["restore", try #require(backup)])
            let none = fixture.folder.appending(path: "to/none")
            try FileManager.default.createDirectory(at: none, withIntermediateDirectories: true)
            try await verbs.run("`backup list`", ["backup", "list", "--backups", to])
            try await verbs.run("`backup verify`", ["backup", "verify", "--backups", to], status: 5)
            try await verbs.run("`backup prune`", ["backup", "prune", "--keep", "1", "--backups", to])
            try await fixture.queue(1)
            try await fixture.write(7)
            try fixture.damageCache()
            try await verbs.run("`repair`", ["repair"], status: 3)
            try await verbs.run("`repair`", ["repair", "--write"])
            try fixture.execute("DELETE FROM mutation_content")
            try await verbs.run("`repair`", ["repair", "--write"])
        }
    }

    @Test("So do the verbs of environments")
    func environments() async throws {
        try await withVerbs { verbs in
            let fixture = verbs.fixture
            func add(_ name: String, _ more: String...) async throws {
                let url = "https://\(name).example/graphql"
                try await verbs.run("`env add`", ["env", "add", name, "--url", url] + more)
            }
            let switching = "`plan --use`, `env use`, `env none`"
            try await fixture.queue(1)
            try await add("a", "--succeeds-unnamed")
            try await add("b")
            try await verbs.run("`env list`", ["env", "list"])
            try await verbs.run(switching, ["env", "use", "a"])
            try await verbs.run(switching, ["plan", "--use", "b", "--park"], status: 3)
            try await verbs.run(switching, ["env", "use", "b", "--park"])
            try Data(#"{"environment":"b"}"#.utf8).write(to: fixture.folder.appending(path: ".larder.json"))
            try await verbs.run("`env current`", ["env", "current"])
            try await verbs.run("`env current`", ["env", "current"], environment: ["LARDER_ENV": "b"])
            try await verbs.run("`env show`", ["env", "show", "--origin"])
            try await verbs.run("`env show`", ["env", "show", "--origin"], environment: ["LARDER_ENV": "b"])
            try await verbs.run(switching, ["env", "none", "--park"])
            try await add("c")
            try await verbs.run("`env remove`", ["env", "remove", "c"])
            try await verbs.run(switching, ["env", "use", "b"])
            try await fixture.beginUpload("v/1", .upload("u-1"))
            try await verbs.run(switching, ["env", "none", "--discard"])
            try await verbs.run("`env forget`", ["env", "forget", "b", "--confirm", "b", "--discard"])
        }
    }

    @Test("Each exit status that is documented is given, and is in the failure that is printed")
    func statuses() async throws {
        try await MigrationFixture.with { fixture in
            func expect(_ status: Int32, _ code: String?, _ arguments: String...) async throws {
                let outcome = try await MigrateProcess.run(
                    arguments + ["--store", fixture.store.path, "--json"], in: fixture.folder)
                #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
                guard let code else { return #expect(outcome.output != "") }
                let line = outcome.errors.split(separator: "\n").last.map { Data($0.utf8) } ?? Data()
                let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
                let error = object?["error"] as? [String: Any]
                #expect(outcome.output == "")
                #expect(error?["code"] as? String == code && (error?["message"] as? String)?.isEmpty == false)
                #expect(error?["exit"] as? Int == Int(status))
            }
            try await expect(1, "command.noStore", "status")
            try fixture.makeOlder()
            try await expect(3, nil, "status")
            try await expect(3, nil, "plan")
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            try await expect(1, "operations.migrationLocked", "up", "--timeout", "0")
            lock.release()
            try await expect(0, nil, "up", "--no-backup")
            try await expect(0, nil, "status")
            try await expect(2, "command.usage", "up", "--timeout", "soon")
            try await expect(2, "operations.damagedBackup", "restore", fixture.folder.path)
            try await expect(3, "command.noEnvironment", "env", "current")
            try await expect(3, "operations.unknownEnvironment", "env", "use", "nowhere")
            try await fixture.write(7)
            try fixture.damageCache()
            try await expect(5, "command.findings", "validate")
            try fixture.execute("UPDATE migration SET checksum = 'another' WHERE number = 1")
            try await expect(4, "operations.migrationChanged", "validate")
        }
    }

    @Test("A damaged cache is a finding of validate, by its partition's name, with status 5")
    func damagedCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.damageCache()
            let outcome = try await fixture.migrate("validate", "--json")
            #expect(outcome.status == 5, "\(outcome.output)")
            #expect(outcome.output == "")
            #expect(outcome.errors.contains(#""findingCount":1,"findings":["cache main: "#), "\(outcome.errors)")
        }
    }
}

extension MigrationFixture {
    /// Puts a cache beside a database of an older version, which opening the store would migrate.
    fileprivate func addCache() async throws {
        let other = MigrationFixture(folder: folder.appending(path: "other"))
        try FileManager.default.createDirectory(at: other.folder, withIntermediateDirectories: true)
        try await other.write(7)
        try FileManager.default.copyItem(
            at: other.store.appending(path: "records"), to: store.appending(path: "records"))
    }
}
