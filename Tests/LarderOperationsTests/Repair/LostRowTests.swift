import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Repair of a database that has lost rows", .timeLimit(.minutes(10)))
struct LostRowTests {
    private typealias Part = RepairScene.Part

    /// What is gone, and so what a repair cannot know.
    private struct Loss: CustomStringConvertible {
        var table: String
        var row: String?
        /// The mutation whose own row it was.
        var part: Part?

        var description: String { row.map { "\(table) where \($0)" } ?? "all of \(table)" }
    }

    private static let waits: Set = ["mutation_dependency", "mutation_transfer", "temporary_id_use", "mutation_link"]

    @Test("Whichever row is lost, what is left fits together, and nothing is sent that must not be")
    func rows() async throws {
        try await RepairScene.with { scene in
            var empty: [String] = []
            for table in try tables(scene) {
                let rows = try keys(of: table, scene)
                if rows.isEmpty { empty.append(table) }
                for row in rows {
                    let part = try part(of: table, row, scene)
                    try scene.execute("DELETE FROM \(table) WHERE \(row)")
                    try await expectMended(scene, Loss(table: table, row: row, part: part))
                }
            }
            #expect(empty == [], "the scene shows nothing of them")
        }
    }

    @Test("Whichever table is lost with all its pages, what may have waited or been sent is set aside")
    func wholeTables() async throws {
        try await RepairScene.with { scene in
            for table in try tables(scene) where table != "sqlite_sequence" {
                var page = 0
                try scene.change { db in
                    page = Int(try db.integer("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table]) ?? 0)
                }
                try #require(page > 1)
                let handle = try FileHandle(forUpdating: scene.file)
                try handle.seek(toOffset: UInt64(page - 1) * 4_096)
                try handle.write(contentsOf: Data(repeating: 0xA5, count: 4_096))
                try handle.close()
                try await expectMended(scene, Loss(table: table))
            }
        }
    }

    @Test("Two files that are damaged in one moment are both kept, and so are their bytes")
    func keptInOneMoment() async throws {
        try await RepairScene.with { scene in
            var kept: [String: Data] = [:]
            for table in ["watcher", "pin"] {
                try scene.execute("DELETE FROM \(table)")
                let (report, damaged) = try scene.repair()
                kept[report.kept] = damaged
            }
            #expect(kept.count == 2)
            for (name, bytes) in kept {
                #expect(try Data(contentsOf: scene.folder.appending(path: name)) == bytes, "\(name)")
            }
        }
    }

    @Test("A log that the damaged file has is read, and kept beside it, whichever row is lost in it")
    func logs() async throws {
        try await RepairScene.with { scene in
            let log = URL(filePath: scene.file.path + "-wal")
            for part in Part.allCases {
                let sequence = try #require(scene.mutations[part]).sequence
                var files: [Data] = []
                try scene.change { db in
                    try db.execute(sql: "DELETE FROM mutation_content WHERE sequence = \(sequence)")
                    files = [try Data(contentsOf: scene.file), try Data(contentsOf: log)]
                }
                try #require(files[1].count > 4_096)
                try files[0].write(to: scene.file)
                try files[1].write(to: log)
                let kept = scene.folder.appending(path: try scene.repair().report.kept)
                #expect(try Data(contentsOf: kept) == files[0])
                #expect(try Data(contentsOf: URL(filePath: kept.path + "-wal")) == files[1])
                let database = try OperationsDatabase(folder: scene.folder)
                let there = try database.mutations.list().map(\.lane)
                #expect(Set(there) == Set(Part.allCases.map(\.rawValue)).subtracting([part.rawValue]))
                try expectSound(database, "\(part)")
                try database.close()
            }
        }
    }

    @Test("Where another process writes while a row is saved, the repair gives up and the file is as that has made it")
    func meanwhile() async throws {
        try await RepairScene.with { scene in
            for table in try tables(scene) {
                guard let row = try keys(of: table, scene).first else { continue }
                try scene.execute("DELETE FROM \(table) WHERE \(row)")
                let lock = try MigrationLock.take(in: scene.folder, for: "a test", within: .seconds(60))
                defer { lock.release() }
                var written = Data()
                let error = #expect(throws: OperationsError.self) {
                    _ = try OperationsDatabase.repair(folder: scene.folder, holding: lock, now: noon) { step in
                        guard step == .salvaged else { return }
                        let other = try DatabaseQueue(path: scene.file.path)
                        try other.write { try $0.execute(sql: "UPDATE mutation SET touched = x'00'") }
                        try other.close()
                        written = try Data(contentsOf: scene.file)
                    }
                }
                #expect(error?.code == .busy, "\(table)")
                #expect(try Data(contentsOf: scene.file) == written, "\(table)")
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: scene.folder.path)
            #expect(!names.contains { $0.contains(".damaged-") })
        }
    }

    @Test("A damaged file is kept under the time of its repair; one of the same moment, with a number behind it")
    func keptNames() async throws {
        try await RepairScene.with { scene in
            let names = try (0..<3).map { _ in try scene.repair().report.kept }
            #expect(names == ["", "-2", "-3"].map { "larder.sqlite.damaged-2027-01-15T080000Z\($0)" })
        }
    }

    @Test("A mutation of which an outcome tells is not sent again, whatever number the outcome has")
    func outcomeKnown() async throws {
        try await RepairScene.with { scene in
            let free = try #require(scene.mutations[.free])
            try scene.execute("UPDATE outcome SET id = (SELECT id FROM mutation WHERE sequence = \(free.sequence))")
            _ = try scene.repair()
            let database = try OperationsDatabase(folder: scene.folder)
            #expect(try !database.mutations.list().contains { $0.id == free.id })
            #expect(try database.outcome(free.id) != nil)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A mutation that holds a temporary id which is lost is set aside, and not sent with it")
    func temporaryIDLost() async throws {
        try await RepairScene.with { scene in
            let (maker, holder) = (try #require(scene.mutations[.maker]), try #require(scene.mutations[.holder]))
            try scene.execute("DELETE FROM temporary_id WHERE sequence = \(maker.sequence)")
            _ = try scene.repair()
            let database = try OperationsDatabase(folder: scene.folder)
            let found = try database.mutation(holder.id)
            #expect(found?.state == .deadLetter)
            #expect(found?.failure?.class == .temporaryIDLost)
            try database.close()
        }
    }

    @Test("Where the note is lost that a mutation holds a temporary id, the real one takes its place all the same")
    func useLost() async throws {
        try await RepairScene.with { scene in
            let (maker, holder) = (try #require(scene.mutations[.maker]), try #require(scene.mutations[.holder]))
            let token = try #require(maker.temporaryIDs.first)
            try scene.execute("DELETE FROM temporary_id_use")
            _ = try scene.repair()
            let database = try OperationsDatabase(folder: scene.folder)
            try await database.complete(maker.id, temporaryIDs: [token: "7"])
            #expect(try database.mutation(holder.id)?.content.variables == json(#"{"id":"7"}"#))
            try database.close()
        }
    }

    @Test("A mutation that holds a temporary id stays behind its maker that is set aside, where that link is lost")
    func stalledBehindMaker() async throws {
        try await RepairScene.with { scene in
            let (maker, holder) = (try #require(scene.mutations[.maker]), try #require(scene.mutations[.holder]))
            try scene.execute(
                """
                DELETE FROM mutation_dependency WHERE sequence = \(holder.sequence);
                PRAGMA ignore_check_constraints = ON;
                UPDATE mutation SET attempts = -1 WHERE sequence = \(maker.sequence);
                """)
            _ = try scene.repair()
            let database = try OperationsDatabase(folder: scene.folder)
            // Its id is lost with that.
            #expect(try database.mutations.list().first { $0.sequence == maker.sequence }?.state == .deadLetter)
            let found = try database.mutation(holder.id)
            #expect(found?.state == .pending && found?.isStalled == true)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A mutation of which a value cannot be read is counted among those that are set aside")
    func unreadable() async throws {
        try await RepairScene.with { scene in
            let free = try #require(scene.mutations[.free])
            try scene.change { _ in }
            let before = try scene.repair().report
            try scene.execute("UPDATE mutation_content SET variables = x'7b' WHERE sequence = \(free.sequence)")
            let report = try scene.repair().report
            #expect(report.setAside == before.setAside + 1)
            #expect(report.rows.filter { $0.damaged > 0 }.map(\.table) == ["mutation"])
            let database = try OperationsDatabase(folder: scene.folder)
            #expect(try database.mutation(free.id)?.failure?.class == .damaged)
            try database.close()
        }
    }

    @Test("A mutation of which a value is not of its column's type is set aside; the others are as they were")
    func wrongType() async throws {
        try await RepairScene.with { scene in
            let (free, failed) = (try #require(scene.mutations[.free]), try #require(scene.mutations[.failed]))
            try scene.change { db in
                let sql = try db.texts("SELECT sql FROM sqlite_schema WHERE name = 'mutation'")
                let definition = try #require(sql.first).replacing("'", with: "''")
                func define(_ sql: String) throws {
                    try db.execute(
                        sql: """
                            PRAGMA writable_schema = ON;
                            UPDATE sqlite_schema SET sql = '\(sql)' WHERE name = 'mutation';
                            PRAGMA writable_schema = RESET;
                            """)
                }
                try define(definition.replacing(") STRICT", with: ")"))
                try db.execute(
                    sql: """
                        PRAGMA ignore_check_constraints = ON;
                        UPDATE mutation SET attempts = 'many' WHERE sequence = \(free.sequence);
                        PRAGMA ignore_check_constraints = OFF;
                        """)
                try define(definition)
            }
            let report = try scene.repair().report
            #expect(report.lost == 0 && report.rows.first { $0.table == "mutation" }?.damaged == 1)
            let database = try OperationsDatabase(folder: scene.folder)
            let found = try database.mutation(free.id)
            #expect(found?.state == .deadLetter && found?.failure?.class == .damaged)
            #expect(found?.content == free.content)
            #expect(try database.state(failed.id) == .pending)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A mutation whose row breaks a rule of its table is set aside with what it was to send, and told")
    func brokenRule() async throws {
        try await RepairScene.with { scene in
            let free = try #require(scene.mutations[.free])
            try scene.execute(
                """
                PRAGMA ignore_check_constraints = ON;
                UPDATE mutation SET attempts = -1 WHERE sequence = \(free.sequence);
                """)
            let report = try scene.repair().report
            #expect(report.lost == 0 && report.rows.first { $0.table == "mutation" }?.damaged == 1)
            let database = try OperationsDatabase(folder: scene.folder)
            let found = try database.mutations.list().first { $0.sequence == free.sequence }
            #expect(found?.state == .deadLetter && found?.failure?.class == .damaged)
            #expect(found?.content == free.content)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("Partitions whose counters cannot be read keep their names, their users and their mutations")
    func partitions() async throws {
        try await RepairScene.with { scene in
            try scene.execute(
                """
                INSERT INTO partition (name, environment, user)
                SELECT 'second', environment, 'ann' FROM partition WHERE name = '\(app)';
                UPDATE partition SET transfer_changes = 9223372036854775807;
                """)
            let report = try scene.repair().report
            #expect(report.lost == 0 && report.rows.first { $0.table == "partition" }?.damaged == 2)
            let database = try OperationsDatabase(folder: scene.folder)
            #expect(try Set(database.mutations.list().map(\.lane)) == Set(Part.allCases.map(\.rawValue)))
            #expect(try database.environments.partition(app)?.environment == "a")
            #expect(try database.environments.partition("second")?.user == "ann")
            try expectSound(database)
            try database.close()
        }
    }

    @Test("In a file of an older version the last failure tells which attempts may have taken effect")
    func older() async throws {
        try await withTemporaryFolder { folder in
            let migrations = MigrationSet(migrations: Array(Migration.all.prefix(10)))
            try OperationsDatabase(folder: folder, options: .init(), migrations: migrations).close()
            let file = folder.appending(path: OperationsDatabase.fileName)
            let queue = try DatabaseQueue(path: file.path)
            try await queue.write { db in
                try db.execute(sql: "INSERT INTO partition (name) VALUES ('\(app)')")
                for (lane, attempts, failure) in [
                    ("new", 0, nil), ("vain", 1, "offline"), ("doubtful", 1, "outcomeUnknown"), ("silent", 1, nil),
                ] as [(String, Int, String?)] {
                    try db.execute(
                        sql: """
                            INSERT INTO mutation (id, partition, lane, state, stalled, queued, attempts, created)
                            VALUES (randomblob(16), 1, '\(lane)', 0, 0, 1, \(attempts), 0)
                            """)
                    let sequence = db.lastInsertedRowID
                    try db.execute(
                        sql: """
                            INSERT INTO mutation_content (sequence, document, variables)
                            VALUES (\(sequence), 'mutation { a }', x'7b7d')
                            """)
                    guard let failure else { continue }
                    try db.execute(
                        sql: """
                            INSERT INTO mutation_link VALUES (\(sequence));
                            INSERT INTO mutation_failure (sequence, class, message, time)
                            VALUES (\(sequence), '\(failure)', '', 0);
                            """)
                }
            }
            try queue.close()
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            defer { lock.release() }
            let report = try OperationsDatabase.repair(folder: folder, holding: lock, now: noon)
            #expect(report.setAside == 2)
            let database = try OperationsDatabase(folder: folder)
            let states = try database.mutations.list().map { ($0.lane, $0.state) }
            #expect(
                Dictionary(uniqueKeysWithValues: states) == [
                    "new": .pending, "vain": .pending, "doubtful": .deadLetter, "silent": .deadLetter,
                ])
            try expectSound(database)
            try database.close()
        }
    }

    // MARK: The rules

    private func expectMended(_ scene: RepairScene, _ loss: Loss) async throws {
        let comment: Comment = "\(loss)"
        let (report, damaged) = try scene.repair()
        #expect(try Data(contentsOf: scene.folder.appending(path: report.kept)) == damaged, comment)
        let database = try OperationsDatabase(folder: scene.folder)
        try expectSound(database, comment)
        let found = try database.mutations.list()
        let after = Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0) })
        let isPartitionLost = loss.table == "partition"
        for (part, before) in scene.mutations {
            guard let mutation = after[before.id] else {
                let isOwn = loss.row == nil || loss.part == part
                let isExpected = isPartitionLost || isOwn && ["mutation", "mutation_content"].contains(loss.table)
                #expect(isExpected, "\(part) is lost with \(loss)")
                continue
            }
            #expect(mutation.sequence == before.sequence, "\(part), \(loss)")
            switch part {
            case .inFlight, .doubtful:
                #expect(mutation.state == .deadLetter, "\(part), \(loss)")
                // Where nothing is known any more of what any mutation waited for, that is said of each.
                let isOneOfAll = part == .doubtful && loss.row == nil && Self.waits.contains(loss.table)
                #expect(isOneOfAll || mutation.failure?.class == .outcomeUnknown, "\(part), \(loss)")
            case .acknowledged:
                let isAnswered = loss.table != "mutation_answer"
                #expect(mutation.state == (isAnswered ? .acknowledged : .deadLetter), "\(loss)")
                #expect(mutation.answer == (isAnswered ? before.answer : nil), "\(loss)")
            case .deadLetter: #expect(mutation.state == .deadLetter && mutation.failure != nil, "\(loss)")
            case .free, .failed, .maker, .dependent, .holder, .uploader:
                expectUnsent(mutation, before, part, scene, loss)
            }
        }
        try await expectNewNumbers(database, scene, comment)
        try database.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: scene.folder.path)
        where name.contains(".damaged-") {
            try FileManager.default.removeItem(at: scene.folder.appending(path: name))
        }
    }

    /// It is as it was, and waits for what it waited for; or it is set aside, for which there is a cause.
    private func expectUnsent(
        _ mutation: Mutation, _ before: Mutation, _ part: Part, _ scene: RepairScene, _ loss: Loss
    ) {
        var mayBeSetAside = loss.row == nil && Self.waits.contains(loss.table)
        switch part {
        case .dependent: mayBeSetAside = mayBeSetAside || loss.part == .free || loss.table.hasPrefix("mutation")
        case .holder:
            mayBeSetAside =
                mayBeSetAside || loss.part == .maker || ["mutation", "temporary"].contains { loss.table.hasPrefix($0) }
        case .uploader:
            mayBeSetAside = mayBeSetAside || loss.table.hasPrefix("transfer") || loss.table.hasPrefix("mutation")
        default: break
        }
        // What it waited for is among the rows that are lost.
        if loss.row == nil, Self.waits.contains(loss.table), loss.table != "mutation_link" {
            let hasWaited = [Part.dependent, .holder, .uploader].contains(part)
            #expect(mutation.state == .deadLetter || !hasWaited, "\(part), \(loss)")
        }
        guard mutation.state == .pending else {
            #expect(mutation.state == .deadLetter && mayBeSetAside, "\(part) is \(mutation.state) with \(loss)")
            #expect(mutation.failure != nil, "\(part), \(loss)")
            return
        }
        #expect(mutation.content == before.content, "\(part), \(loss)")
        #expect(mutation.lane == before.lane && mutation.idempotencyKey == before.idempotencyKey, "\(part), \(loss)")
        // Of a single link that is gone nothing tells; temporary ids stand in what is sent, and tell it once more.
        let isLinkGone = loss.row != nil && Self.waits.contains(loss.table)
        if !isLinkGone || part == .holder {
            #expect(mutation.dependencies == before.dependencies, "\(part), \(loss)")
        }
        if !isLinkGone { #expect(mutation.transfers == before.transfers, "\(part), \(loss)") }
    }

    /// No number that was given is given again, to mutations or transfers, whatever tells of it is lost.
    private func expectNewNumbers(
        _ database: OperationsDatabase, _ scene: RepairScene, _ comment: Comment
    ) async throws {
        let last = try await database.pool.read { db in
            try ["mutation", "transfer"].map { table in
                try db.integer("SELECT seq FROM sqlite_sequence WHERE name = ?", [table]) ?? 0
            }
        }
        #expect(last[0] > scene.lastMutation && last[1] > scene.lastTransfer, comment)
        #expect(try !database.mutations.list().contains { $0.id == scene.settled }, comment)
    }

    // MARK: Rows

    private func tables(_ scene: RepairScene) throws -> [String] {
        var tables: [String] = []
        try scene.change { db in
            tables = try db.texts("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        }
        return tables
    }

    /// A condition for each row of a table.
    private func keys(of table: String, _ scene: RepairScene) throws -> [String] {
        var keys: [String] = []
        try scene.change { db in
            var columns = try db.texts("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", [table])
            if columns.isEmpty { columns = ["rowid"] }
            let terms = columns.map { "'\($0) = ' || quote(\($0))" }.joined(separator: " || ' AND ' || ")
            keys = try db.texts("SELECT \(terms) FROM \(table) ORDER BY 1")
        }
        return keys
    }

    /// The mutation to which a row belongs.
    private func part(of table: String, _ row: String, _ scene: RepairScene) throws -> Part? {
        var sequence: Int64?
        try scene.change { db in
            guard try db.exists("SELECT 1 FROM pragma_table_info(?) WHERE name = 'sequence'", [table]) else { return }
            sequence =
                try db.row("SELECT sequence FROM \(table) WHERE \(row)") { try $0.optional(0, $0.integer) } ?? nil
        }
        guard table.hasPrefix("mutation") || table.hasPrefix("temporary") else { return nil }
        return scene.mutations.first { $0.value.sequence == sequence }?.key
    }
}
