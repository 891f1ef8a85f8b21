import Foundation
import GRDBSQLite
import Larder
import LarderPowerLoss

/// Queues so much that the queue's log is copied to its file: first as far as another connection allows that reads,
/// then all of it. Queues more, which goes to the beginning of the log, and ends without closing.
///
/// What it was promised it marks at once:
///
/// ```
/// accepted ID     enqueue has returned
/// released        nobody reads any more
/// ```
struct LongLog {
    let folder: URL
    let marks: Marks

    func run() async throws {
        let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
        let app = try store.partition(server: RecipeLedger())
        for _ in 0..<8 { try await queue(60_000, app) }
        var connection: OpaquePointer?
        guard sqlite3_open_v2(folder.path + "/larder.sqlite", &connection, SQLITE_OPEN_READONLY, nil) == SQLITE_OK,
            sqlite3_exec(connection, "BEGIN; SELECT count(*) FROM mutation", nil, nil, nil) == SQLITE_OK
        else { exit(3) }
        for _ in 0..<72 { try await queue(60_000, app) }
        sqlite3_exec(connection, "ROLLBACK", nil, nil, nil)
        marks("released")
        for _ in 0..<6 { try await queue(10, app) }
        withExtendedLifetime((store, connection)) { _exit(0) }
    }

    private func queue(_ size: Int, _ app: Partition) async throws {
        let id = MutationID(UUID())
        let operation = GraphQLOperation(
            "mutation Add($title: String!) { add(title: $title) { id title stars } }",
            variables: ["title": .string(String(repeating: "x", count: size))])
        _ = try await app.enqueue(operation, options: MutationOptions(id: id))
        marks("accepted", "\(id)")
    }
}
