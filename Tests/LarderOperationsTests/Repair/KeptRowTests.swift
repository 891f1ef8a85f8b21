import Foundation
import Testing

@testable import LarderOperations

@Suite("Rows that a repair keeps except for one value", .timeLimit(.minutes(10)))
struct KeptRowTests {
    @Test(
        "An environment or a partition with one value out of its range keeps its name and its other values",
        arguments: [("environment", "protected = 7"), ("partition", "user = ''")])
    func owners(table: String, damage: String) async throws {
        try await RepairScene.with { scene in
            try scene.execute("PRAGMA ignore_check_constraints = ON; UPDATE \(table) SET \(damage)")
            let report = try scene.repair().report
            #expect(report.rows.first { $0.table == table }?.damaged == 1)
            let database = try OperationsDatabase(folder: scene.folder)
            #expect(try database.environments.find("a")?.definition == json(#"{"name":"a"}"#))
            let partition = try database.environments.partition(app)
            #expect(partition?.environment == "a" && partition?.user == nil)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A transfer with a value out of its range fails as damaged, and other transfers go on")
    func transfer() async throws {
        try await RepairScene.with { scene in
            try scene.execute("PRAGMA ignore_check_constraints = ON; UPDATE transfer SET attempts = -1 WHERE kind = 0")
            let report = try scene.repair().report
            #expect(report.rows.first { $0.table == "transfer" }?.damaged == 1)
            let database = try OperationsDatabase(folder: scene.folder)
            let transfers = try database.transfers.list()
            #expect(transfers.map(\.state) == [.failed, .pending])
            #expect(transfers.first?.failure?.code == TransferFailure.damagedRow)
            try expectSound(database)
            try database.close()
        }
    }
}
