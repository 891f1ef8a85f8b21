import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

struct Env: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Lists the environments, their partitions, and which is the current one.",
        discussion: """
            One partition a line, the current one marked by an asterisk: its own name, environment, user, and how many \
            mutations it has. It takes no notice of LARDER_ENV and LARDER_PARTITION but to say that the store does not \
            know what they name. larder-migrate adds environments, switches and forgets them.
            """)

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let found =
            try await store.folderOfAll(output).withOperations(.reading, output) { database in
                let table = database.environments
                return Found(
                    environments: try table.list(), current: try table.current()?.partition?.name,
                    partitions: try table.partitions().map { partition in
                        (partition, try database.mutations.counts(in: partition.name))
                    })
            } ?? Found(environments: [], current: nil, partitions: [])
        try output.result(found.json, table: found.cells)
    }

    private struct Found {
        var environments: [StoredEnvironment]
        var current: String?
        var partitions: [(StoredPartition, [MutationState: Int])]

        var json: JSONText {
            .object([
                (
                    "environments",
                    .array(
                        environments.map { environment in
                            .object([
                                ("name", .string(environment.name)), ("definition", .raw(environment.definition)),
                                ("isProtected", .boolean(environment.isProtected)),
                            ])
                        })
                ),
                (
                    "partitions",
                    .array(
                        partitions.map { partition, counts in
                            .object(
                                partition.members + [
                                    ("isCurrent", .boolean(partition.name == current)),
                                    ("pending", .int(counts[.pending] ?? 0)),
                                    ("inFlight", .int(counts[.inFlight] ?? 0)),
                                    ("acknowledged", .int(counts[.acknowledged] ?? 0)),
                                    ("deadLetters", .int(counts[.deadLetter] ?? 0)),
                                ])
                        })
                ),
            ])
        }

        var cells: [[TableCell]] {
            partitions.map { partition, counts in
                let isCurrent = partition.name == current
                return [
                    TableCell(isCurrent ? "*" : "-", isCurrent ? .good : .faint)
                ] + partition.cells + [TableCell(counts.values.reduce(0, +).counted("mutation"))]
            }
        }
    }
}

extension StoredPartition {
    /// Its name, environment and user, as JSON has them.
    var members: [(name: String, value: JSONText)] {
        [
            ("partition", .string(name)), ("environment", environment.map(JSONText.string) ?? .null),
            ("user", user.map(JSONText.string) ?? .null),
        ]
    }
}
