import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite(
    "Importing at the command line", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct ImportVerbTests {
    private static let schema = """
        type Query { movie(id: ID!): Movie latest: [Movie!] }
        type Movie { id: ID! title: String }
        """

    /// A folder with a schema and a cache of Apollo's client, as its CREATE TABLE statement makes it.
    private func withCache(_ body: (MigrationFixture, _ cache: String, _ schema: String) async throws -> Void)
        async throws
    {
        try await MigrationFixture.with { (fixture) throws in
            let schema = fixture.folder.appending(path: "schema.graphqls")
            try Data(Self.schema.utf8).write(to: schema)
            let cache = fixture.folder.appending(path: "apollo.sqlite")
            let queue = try DatabaseQueue(path: cache.path)
            try queue.write { db in
                try db.execute(
                    sql: """
                        CREATE TABLE "records" ("_id" INTEGER PRIMARY KEY AUTOINCREMENT, "key" TEXT UNIQUE, "record" TEXT);
                        """)
                for (key, record) in [
                    ("QUERY_ROOT", #"{"latest":[{"$reference":"Movie:1"}],"unheardOf":1}"#),
                    ("Movie:1", #"{"__typename":"Movie","id":"1","title":"Heat"}"#),
                ] {
                    try db.execute(sql: "INSERT INTO records (key, record) VALUES (?, ?)", arguments: [key, record])
                }
            }
            try queue.close()
            try await body(fixture, cache.path, schema.path)
        }
    }

    @Test("Without --write it tells what it would take and what not, and makes no store")
    func dryRun() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let told = try await fixture.migrate("import", "--from", "apollo", cache, "--schema", schema)
            #expect(told.status == 0, "\(told.errors)")
            let read = "records read: 2, 0 of them parts of others, 0 not taken\n"
            #expect(told.output.hasPrefix(read), "\(told.output)")
            #expect(told.output.contains("objects: 1 to take, 0 there already"))
            #expect(!told.output.contains("subscriptions"))
            #expect(told.output.contains("1 x field: the schema has no such field"))
            #expect(told.errors.contains("nothing was written; --write does it"))
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path))
        }
    }

    @Test("With --write the objects are there; a second time nothing is taken, after a backup")
    func written() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let first = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--write", "--json")
            #expect(first.status == 0, "\(first.errors)")
            var documented = try DocumentedResults()
            try documented.compare("`import`", first.output)
            documented.finish()
            #expect(documented.problems == [])
            let report = try #require(try result(first)["report"] as? [String: Any])
            #expect(try text(report["objects"]) == #"{"present":0,"taken":1}"#)
            #expect(try text(report["rootFields"]) == #"{"present":0,"taken":1}"#)
            let store = try Store.open(at: fixture.store, schema: try Schema(parsing: Self.schema))
            let latest = try store.partition().read(GraphQLOperation("{ latest { title } }"))
            #expect(latest["latest"]?.elements.first?["title"]?.string == "Heat")
            try store.close()
            let second = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--write", "--json")
            let again = try #require(try result(second)["report"] as? [String: Any])
            #expect(try text(again["objects"]) == #"{"present":1,"taken":0}"#)
            #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.backups.path).count == 1)
            try await fixture.expectSound()
        }
    }

    @Test("The backup before an import is made in the folder that is named, and none where none is wanted")
    func backups() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let place = fixture.folder.path + "/place"
            func written(_ more: String...) async throws -> Any? {
                let arguments = ["import", "--from", "apollo", cache, "--schema", schema, "--write", "--json"]
                let outcome = try await MigrateProcess.run(arguments + ["--store", fixture.store.path] + more)
                return try result(outcome)["backup"]
            }
            // Of what is new there is nothing to be backed up.
            #expect(try await written() is NSNull)
            #expect(try await written("--no-backup") is NSNull)
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
            #expect((try await written("--backups", place) as? String)?.hasPrefix(place + "/") == true)
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
        }
    }

    @Test("Without --write an existing store is asked what it knows already, and is not changed")
    func dryRunAgain() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let arguments = ["import", "--from", "apollo", cache, "--schema", schema, "--store", fixture.store.path]
            let first = try await MigrateProcess.run(arguments + ["--write"])
            #expect(first.status == 0, "\(first.errors)")
            let told = try await MigrateProcess.run(arguments)
            #expect(told.status == 0, "\(told.errors)")
            #expect(told.output.contains("objects: 0 to take, 1 there already"), "\(told.output)")
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
        }
    }

    @Test("Without --write a store that has no cache yet takes all, and one whose cache is damaged is told as that")
    func dryRunWithoutCache() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let arguments = ["import", "--from", "apollo", cache, "--schema", schema, "--store", fixture.store.path]
            try await fixture.queue(1)
            let told = try await MigrateProcess.run(arguments)
            #expect(told.status == 0, "\(told.errors)")
            #expect(told.output.contains("objects: 1 to take, 0 there already"), "\(told.output)")
            let written = try await MigrateProcess.run(arguments + ["--write", "--no-backup"])
            #expect(written.status == 0, "\(written.errors)")
            let file = fixture.store.appending(path: "records/main/1/data.mdb")
            try Data("This is no cache.".utf8).write(to: file)
            let damaged = try await MigrateProcess.run(arguments)
            #expect(damaged.status == 5 && damaged.output == "", "\(damaged)")
        }
    }

    /// As `withCache`, with a folder of AppSync's databases, in which one mutation waits, and a schema that has it.
    private func withQueue(_ body: (MigrationFixture, _ folder: URL, _ schema: String) async throws -> Void)
        async throws
    {
        try await withCache { (fixture, _, schema) throws in
            let folder = fixture.folder.appending(path: "appsync")
            try addQueue(to: folder)
            try Data((Self.schema + " type Mutation { note: Int }").utf8).write(to: URL(filePath: schema))
            try await body(fixture, folder, schema)
        }
    }

    private func addQueue(to folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let queue = try DatabaseQueue(path: folder.appending(path: "offlineMutations.db").path)
        try queue.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE "mutation_records" ("_id" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, \
                    "recordIdentifier" TEXT NOT NULL UNIQUE, "data" BLOB NOT NULL, "recordState" TEXT NOT NULL, \
                    "timestamp" TEXT NOT NULL, "s3Bucket" TEXT, "s3Key" TEXT, "s3Region" TEXT, "s3LocalUri" TEXT, \
                    "s3MimeType" TEXT, "operationString" TEXT NOT NULL);
                    INSERT INTO mutation_records (recordIdentifier, data, recordState, timestamp, operationString)
                    VALUES ('E621E1F8-C36C-495A-93FC-0C247A3E6E5F', CAST('{"query":"mutation { note }"}' AS BLOB), \
                        'inQueue', '2026-11-21 10:00:00', '');
                    """)
        }
        try queue.close()
    }

    /// Adds the database in which AppSync keeps two subscriptions.
    private func addSubscriptions(to folder: URL) throws {
        let database = try DatabaseQueue(path: folder.appending(path: "subscriptionMetadataCache.db").path)
        try database.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE "subscription_metadata" ("operationHash" TEXT PRIMARY KEY NOT NULL, \
                    "lastSyncDate" TEXT);
                    INSERT INTO subscription_metadata VALUES ('a', '2026-11-21T10:00:00.000'), ('b', NULL);
                    """)
        }
        try database.close()
    }

    @Test(
        "Mutations are queued in a store that is new, and refused by one that lacks migrations",
        arguments: [true, false])
    func mutations(isNew: Bool) async throws {
        try await withQueue { (fixture, folder, schema) throws in
            if !isNew { try fixture.makeOlder() }
            let outcome = try await fixture.migrate(
                "import", "--from", "appsync", folder.path, "--schema", schema, "--mutations", "--write", "--json")
            guard isNew else {
                #expect(outcome.status == 4 && outcome.errors.contains(#""code":"operations.pending""#), "\(outcome)")
                return
            }
            #expect(outcome.status == 0, "\(outcome.errors)")
            let report = try #require(try result(outcome)["report"] as? [String: Any])
            #expect(try text(report["mutations"]) == #"{"present":0,"taken":1}"#)
            #expect(try await fixture.mutations().count == 1)
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
            try await fixture.expectSound()
        }
    }

    @Test("Of the subscriptions of a client it is told how many there are, and that nothing of them is taken")
    func subscriptions() async throws {
        try await withQueue { (fixture, folder, schema) throws in
            try addSubscriptions(to: folder)
            let told = try await fixture.migrate("import", "--from", "appsync", folder.path, "--schema", schema)
            #expect(told.output.contains("\nsubscriptions: 2, of which nothing is taken\n"), "\(told)")
        }
    }

    @Test("An import is refused where the variable names an environment and the store has no current one")
    func noneBesideVariable() async throws {
        try await withCache { (fixture, cache, schema) throws in
            _ = try await fixture.add("staging")
            let told = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--json",
                environment: ["LARDER_ENV": "staging"])
            #expect(told.status == 4, "\(told)")
            #expect(told.errors.contains(#""code":"command.decidedElsewhere""#), "\(told)")
        }
    }

    @Test("An import goes on where the variable names the environment that it would go to anyway")
    func currentByVariable() async throws {
        try await withCache { (fixture, cache, schema) throws in
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            let told = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, environment: ["LARDER_ENV": "staging"])
            #expect(told.status == 0 && told.output.contains("objects: 1 to take, 0 there already"), "\(told)")
        }
    }

    @Test("Of several clients' databases in a folder the ones are taken whose prefix is named")
    func prefix() async throws {
        try await withQueue { (fixture, folder, schema) throws in
            for name in ["movies_offlineMutations.db", "music_offlineMutations.db"] {
                try FileManager.default.copyItem(
                    at: folder.appending(path: "offlineMutations.db"), to: folder.appending(path: name))
            }
            try FileManager.default.removeItem(at: folder.appending(path: "offlineMutations.db"))
            let arguments = [
                "import", "--from", "appsync", folder.path, "--schema", schema, "--mutations", "--json", "--store",
                fixture.store.path,
            ]
            let all = try await MigrateProcess.run(arguments)
            #expect(all.status == 2 && all.errors.contains(#""code":"import.ambiguous""#), "\(all.errors)")
            let one = try await MigrateProcess.run(arguments + ["--prefix", "movies"])
            #expect(one.output.contains(#""mutations":{"present":0,"taken":1}"#), "\(one.output)\(one.errors)")
        }
    }

    @Test("A file that a program is writing to is told as that, with status 1, and no store is made")
    func busy() async throws {
        try await withCache { (fixture, cache, schema) throws in
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let writer = try DatabaseQueue(path: cache, configuration: configuration)
            try writer.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE; DELETE FROM records") }
            let outcome = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--write", "--json")
            #expect(outcome.status == 1, "\(outcome.errors)")
            #expect(outcome.errors.contains(#""code":"import.busy""#), "\(outcome.errors)")
            #expect(outcome.errors.contains("Process \(ProcessInfo.processInfo.processIdentifier) is writing to"))
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path))
            try writer.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
            try writer.close()
        }
    }

    @Test("A missing file, or another program's, is refused as an argument that cannot be used")
    func refused() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let missing = try await fixture.migrate(
                "import", "--from", "appsync", fixture.folder.path + "/none", "--schema", schema, "--json")
            #expect(missing.status == 2 && missing.errors.contains(#""code":"import.missing""#), "\(missing.errors)")
            let foreign = try await fixture.migrate(
                "import", "--from", "apollo", schema, "--schema", schema, "--write", "--json")
            #expect(foreign.status == 2 && foreign.errors.contains(#""code":"import.foreign""#), "\(foreign.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path))
            // The store would be made first in which mutations are queued.
            let none = try await fixture.migrate(
                "import", "--from", "appsync", fixture.folder.path + "/none", "--schema", schema, "--mutations",
                "--write", "--json")
            #expect(none.status == 2 && none.errors.contains(#""code":"import.missing""#), "\(none.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path))
            let unknown = try await fixture.migrate("import", "--from", "realm", cache, "--schema", schema)
            #expect(unknown.status == 2)
        }
    }

    @Test("An import that writes waits for the migration lock as long as --timeout says, and then takes nothing")
    func locked() async throws {
        try await withCache { (fixture, cache, schema) throws in
            try await fixture.queue(1)
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            defer { lock.release() }
            let outcome = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--write", "--timeout", "0", "--json")
            #expect(outcome.status == 1 && outcome.output == "", "\(outcome)")
            #expect(outcome.errors.contains(#""code":"operations.migrationLocked""#), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
        }
    }

    @Test("Without --mutations an import queues none: the other program goes on sending them")
    func withoutMutations() async throws {
        try await withQueue { (fixture, folder, schema) throws in
            let outcome = try await fixture.migrate(
                "import", "--from", "appsync", folder.path, "--schema", schema, "--write", "--json")
            let report = try #require(try result(outcome)["report"] as? [String: Any], "\(outcome.errors)")
            #expect(try text(report["mutations"]) == #"{"present":0,"taken":0}"#)
            #expect(try await fixture.mutations() == [])
        }
    }

    @Test("The backup of an import has the store as it was before the import")
    func backupBefore() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let store = try Store.open(at: fixture.store, schema: try Schema(parsing: Self.schema))
            try await store.partition().write(
                GraphQLOperation("{ movie(id: 2) { __typename id title } }"),
                json: Array(#"{"movie":{"__typename":"Movie","id":"2","title":"Ran"}}"#.utf8))
            try store.close()
            let outcome = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--write", "--json")
            let backup = try #require(try result(outcome)["backup"] as? String)
            let copied = try Data(contentsOf: URL(filePath: backup).appending(path: "records/main/data.mdb"))
            #expect(copied.range(of: Data("Movie:2".utf8)) != nil)
            #expect(copied.range(of: Data("Movie:1".utf8)) == nil)
        }
    }

    @Test("Another library's file that is damaged is refused as a file that cannot be used, and no store is made")
    func damaged() async throws {
        try await withCache { (fixture, cache, schema) throws in
            let file = URL(filePath: cache)
            // The header counts free pages that are not there.
            var bytes = try Data(contentsOf: file)
            bytes[39] = 5
            try bytes.write(to: file)
            let outcome = try await fixture.migrate(
                "import", "--from", "apollo", cache, "--schema", schema, "--write", "--json")
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(outcome.errors.contains(#""code":"import.damaged""#), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path))
        }
    }
}
