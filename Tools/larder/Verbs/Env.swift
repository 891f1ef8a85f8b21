import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

struct Env: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Lists the environments, their partitions, and which is the current one.",
        discussion: """
            One partition a line, the current one marked by an asterisk: its own name, environment, user, and how many \
            mutations it has. larder-migrate adds environments, switches and forgets them.
            """)

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let found =
            try await store.folder().withOperations(.reading, output) { database in
                let table = database.environments
                return Found(
                    environments: try table.list(), current: try table.current()?.partition?.name,
                    partitions: try table.partitions().map { partition in
                        (partition, try database.mutations.counts(in: partition.name))
                    })
            } ?? Found(environments: [], current: nil, partitions: [])
        try output.result(found.json, text: found.text)
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

        var text: String {
            partitions.map { partition, counts in
                "\(partition.name == current ? "*" : " ") \(partition.name) \(Output.oneLine(partition.label)), "
                    + "\(counts.values.reduce(0, +)) mutations"
            }.joined(separator: "\n")
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
