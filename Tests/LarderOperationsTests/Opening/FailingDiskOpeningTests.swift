import Foundation
import GRDB
import LarderFiles
import LarderMigrations
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Opening on a disk that fails in SQLite's own calls", .timeLimit(.minutes(10)))
struct FailingDiskOpeningTests {
    enum Scene: CaseIterable {
        /// Nothing is there.
        case first
        /// A program was killed, and left a log.
        case log
        /// The same, and a migration is missing.
        case migration
        /// The same, and it is repaired.
        case repair
    }

    private static let faults: [FailingDisk.Fault] =
        FailingDisk.faults
        + [false, true].flatMap { isLasting in
            let calls: [(FailingDisk.Call, ResultCode)] = [
                (.open, .SQLITE_CANTOPEN), (.open, .SQLITE_IOERR), (.delete, .SQLITE_IOERR_DELETE),
            ]
            return calls.map { FailingDisk.Fault(call: $0, code: $1.rawValue, isLasting: isLasting) }
        }

    private static let extended = MigrationSet(
        migrations: Migration.all + [
            Migration(
                number: Migration.all.count + 1, name: "extra", sql: json("CREATE TABLE extra (id INTEGER) STRICT;"))
        ])

    @Test(
        "An opening that fails blames the disk and keeps what was acknowledged, wherever a call fails",
        arguments: Scene.allCases, faults)
    func everywhere(scene: Scene, fault: FailingDisk.Fault) async throws {
        try await withTemporaryFolder { ready in
            var accepted: [UUID] = []
            if scene != .first {
                let database = try OperationsDatabase(folder: ready.appending(path: "live"))
                for number in 0..<3 { accepted.append(try await database.enqueue(draft("\(number)"))) }
                let name = OperationsDatabase.fileName
                for name in [name, name + "-wal"] {
                    try FileManager.default.copyItem(
                        at: ready.appending(path: "live/\(name)"), to: ready.appending(path: name))
                }
                try database.close()
                try FileManager.default.removeItem(at: ready.appending(path: "live"))
            }
            var count = 0
            // Each place until the work ends before it; later ones are wider apart.
            while try await work(scene, fault, after: count, ready, accepted) { count += 1 + count / 2 }
        }
    }

    @Test("A volume on which SQLite can keep no log is unsupported, and gets no store")
    func noLog() async throws {
        let disk = FailingDisk(hasSharedMemory: false)
        try await withTemporaryFolder { (folder) async throws in
            await disk.failing(below: folder) {
                let error = #expect(throws: OperationsError.self) { try OperationsDatabase(folder: folder) }
                #expect(error?.code == .unsupported)
            }
            #expect(try !OperationsDatabase.exists(in: folder, FileSystem()))
        }
    }

    /// - Returns: Whether the fault has happened.
    private func work(
        _ scene: Scene, _ fault: FailingDisk.Fault, after count: Int, _ ready: URL, _ accepted: [UUID]
    ) async throws -> Bool {
        let disk = FailingDisk()
        let place = "\(scene), \(fault) after \(count)"
        try await withTemporaryFolder { temporary in
            let folder = temporary.appending(path: "store")
            try FileManager.default.copyItem(at: ready, to: folder)
            let migrations = scene == .migration ? Self.extended : .embedded
            var accepted = accepted
            var refused: [UUID] = []
            disk.arm(fault, after: count)
            await disk.failing(below: folder) {
                defer { disk.heal() }
                do {
                    if scene == .repair { return try Self.repair(folder, place) }
                    let database = try OperationsDatabase(folder: folder, options: .init(), migrations: migrations)
                    let new = draft("new")
                    do throws(OperationsError) {
                        _ = try await database.mutations.enqueue(new)
                        accepted.append(new.id)
                    } catch { if error.code != .commitUnknown { refused.append(new.id) } }
                    try? database.close()
                } catch {
                    let code = (error as? OperationsError)?.code
                    var expected: [OperationsError.Code] = [.storage, .full, .commitUnknown]
                    if fault.call == .open { expected.append(.notWritable) }
                    #expect(code.map(expected.contains) == true, "\(place): \(error)")
                }
            }
            let after = try OperationsDatabase(folder: folder, options: .init(), migrations: migrations)
            for id in accepted { #expect(try after.mutation(id) != nil, "\(place): one is lost") }
            for id in refused { #expect(try after.mutation(id) == nil, "\(place): a refused one is there") }
            _ = try await after.enqueue(draft("last"))
            try expectSound(after, "\(place)")
            try after.close()
        }
        return disk.hasFailed
    }

    /// What the disk does not give for a moment is not lost.
    private static func repair(_ folder: URL, _ place: String) throws {
        let lock = try MigrationLock.take(in: folder, for: "repair", within: .seconds(5))
        defer { lock.release() }
        let report = try OperationsDatabase.repair(folder: folder, holding: lock, now: noon)
        #expect(report.lost + report.setAside == 0, "\(place)")
        #expect(!report.rows.contains { $0.isDamaged || $0.damaged > 0 }, "\(place)")
    }
}
