import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

struct Watchers: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Lists the watchers that outlive their program, and how far each has come.",
        discussion: "One a line: name, whose it is, epoch and number of the last change that was given, "
            + "operation.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions

    func perform(_ output: Output) async throws {
        let watchers: [OwnedRow<StoredWatcher>] =
            try await store.folder(rowsOf: partition).withOperations(.reading, output) { database in
                let owners = try RowOwners(database, of: partition)
                return try database.watchers.list().filter { owners.includes($0.partition) }
                    .map { OwnedRow(row: $0, owner: owners[$0.partition]) }
            } ?? []
        try output.result(
            .object([("watchers", .array(watchers.map(\.json)))]), table: watchers.map(\.cells))
    }
}

extension OwnedRow where Row == StoredWatcher {
    fileprivate var json: JSONText {
        .object(
            [
                ("name", .string(row.name)), ("document", .string(row.document)),
                ("operation", row.operationName.map(JSONText.string) ?? .null), ("variables", .raw(row.variables)),
                (
                    "position",
                    row.position.map { position in
                        .object([
                            ("epoch", .string(String(position.epoch, radix: 16))),
                            ("number", .int(Int(clamping: position.number))),
                        ])
                    } ?? .null
                ),
            ] + owner.members)
    }

    fileprivate var cells: [TableCell] {
        [
            TableCell(row.name), TableCell(owner.word),
            TableCell(row.position.map { String($0.epoch, radix: 16) } ?? "-", .faint),
            TableCell(row.position.map { "\($0.number)" } ?? "-"), TableCell(row.operationName ?? row.document),
        ]
    }
}
