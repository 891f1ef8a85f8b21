import Foundation
import Testing

@testable import LarderOperations

@Suite("Rows that a repair leaves out", .timeLimit(.minutes(10)))
struct LeftOutRowTests {
    @Test(
        "A watcher or a pin that cannot be read is left out, and counted by its table", arguments: ["watcher", "pin"])
    func counted(table: String) async throws {
        try await RepairScene.with { scene in
            try scene.execute("UPDATE \(table) SET variables = x'7b'")
            let report = try scene.repair().report
            let rows = report.rows.filter { $0.damaged > 0 }
            #expect(rows.map(\.table) == [table] && rows.first?.damaged == 1 && rows.first?.saved == 0)
            let database = try OperationsDatabase(folder: scene.folder)
            #expect(try database.watchers.list().count == (table == "watcher" ? 0 : 1))
            #expect(try database.pins.list().count == (table == "pin" ? 0 : 1))
            try expectSound(database)
            try database.close()
        }
    }
}
