import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

struct CredentialsVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credentials", abstract: "Shows which credentials are kept, and works on them. Never a secret.",
        subcommands: [List.self, Rotate.self, EmptyQuarantine.self], defaultSubcommand: List.self)
}

extension CredentialsVerbs {
    struct List: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Tells which credentials are kept, of what age, and what was put into quarantine.",
            discussion:
                "One a line: partition, environment and user, kind, when it was stored; or why it is in quarantine."
        )
        static let name = "credentials list"

        @OptionGroup var store: StoreOptions
        @OptionGroup var partition: PartitionOptions

        func perform(_ output: Output) async throws {
            let found = try await store.sessions(partition, output)
            try output.result(
                .object([
                    (
                        "partitions",
                        .array(
                            found.map { status in
                                .object(
                                    status.owner + [
                                        ("sealedWith", status.sealedWith.map(JSONText.string) ?? .null),
                                        (
                                            "credentials",
                                            .array(
                                                status.credentials.map { kind in
                                                    .object([
                                                        ("kind", .string(kind.kind)), ("created", .date(kind.created)),
                                                        ("updated", .date(kind.updated)),
                                                    ])
                                                })
                                        ),
                                        (
                                            "quarantined",
                                            .array(
                                                status.quarantined.map { held in
                                                    .object([
                                                        ("kind", .string(held.kind)),
                                                        ("reason", .string(held.reasonName)),
                                                        ("time", .date(held.time)),
                                                    ])
                                                })
                                        ),
                                    ])
                            })
                    )
                ]),
                table: found.flatMap { status in
                    status.credentials.map {
                        status.cells + [TableCell($0.kind), TableCell("stored \($0.updated.shown)")]
                    }
                        + status.quarantined.map {
                            status.cells + [
                                TableCell($0.kind), TableCell("in quarantine since \($0.time.shown)", .bad),
                                TableCell($0.reasonName),
                            ]
                        }
                })
        }
    }

    struct Rotate: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Takes a new key into use for the credentials of all partitions, and forgets the old one.",
            discussion:
                "For a store whose key is in its key file. A rotation that was killed has lost nothing: repeat it.")
        static let name = "credentials rotate"

        @OptionGroup var store: StoreOptions

        func perform(_ output: Output) async throws {
            let folder = try store.folder()
            var options = Store.Options()
            options.label = "the larder command"
            let (keys, label) = (options.keys(besides: folder.url), options.label)
            let report = try await folder.withOperations(.writing, output) { database in
                try await KeyRotation(
                    database: database, provider: keys, locks: folder.url.appending(path: "locks"), label: label
                ).run(within: .seconds(30))
            }
            guard let report else {
                throw LarderError(.noEnvironment, "The store keeps no credentials yet; the first sign-in makes its key")
            }
            try output.result(
                .object([
                    ("current", .string(report.current)), ("resealed", .int(report.resealed)),
                    ("unopened", .strings(report.unopened)), ("dropped", .strings(report.dropped)),
                ]),
                text: "the key is \(report.current) now, for the credentials of \(report.resealed.counted("partition"))"
                    + report.unopened.map { "\n\($0): its credentials could not be opened, and are as they were" }
                    .joined())
        }
    }

    struct EmptyQuarantine: Verb {
        static let configuration = CommandConfiguration(
            commandName: "empty-quarantine",
            abstract: "Destroys the credentials that are in quarantine, in all partitions or one. Wants --write.")
        static let name = "credentials empty-quarantine"

        @OptionGroup var store: StoreOptions
        @OptionGroup var partition: PartitionOptions
        @OptionGroup var permission: WritePermission

        func perform(_ output: Output) async throws {
            let folder = try store.folder(rowsOf: partition)
            try permission.require(for: "destroying what is in quarantine")
            let count = try await folder.withOperations(.writing, output) { database in
                let owners = try RowOwners(database, of: partition)
                var count = 0
                for partition in try database.credentials.overview() where owners.includes(partition.partition) {
                    count += try await database.credentials.emptyQuarantine(of: partition.partition)
                }
                return count
            }
            try output.result(
                .object([("destroyed", .int(count ?? 0))]),
                text: "destroyed \((count ?? 0).counted("credential")) in quarantine")
        }
    }
}

struct SessionVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Tells of each partition whether a user is signed in, since when, and why.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions

    func perform(_ output: Output) async throws {
        let found = try await store.sessions(partition, output)
        try output.result(
            .object([
                (
                    "sessions",
                    .array(
                        found.map { status in
                            .object(
                                status.owner + [
                                    ("state", .string(status.standing.state.rawValue)),
                                    ("since", status.standing.since.map(JSONText.date) ?? .null),
                                    ("reason", status.standing.reason.map(JSONText.string) ?? .null),
                                ])
                        })
                )
            ]),
            table: found.map { status in
                let standing = status.standing
                return status.cells + [
                    TableCell(standing.state.rawValue, standing.state.tone), TableCell(standing.kind?.rawValue ?? "-"),
                    TableCell(standing.since?.shown ?? "-", .faint), TableCell(standing.reason ?? ""),
                ]
            })
    }
}

extension StoreOptions {
    /// Of all partitions, or of the named ones.
    fileprivate func sessions(_ partition: PartitionOptions, _ output: Output) async throws -> [SessionStatus] {
        try await folder(rowsOf: partition).withOperations(.reading, output) { database in
            let owners = try RowOwners(database, of: partition)
            return try database.credentials.overview().filter { owners.includes($0.partition) }
                .map { SessionStatus($0) }
        } ?? []
    }
}

extension SessionStatus {
    fileprivate var owner: [(name: String, value: JSONText)] {
        StoredPartition(name: partition, environment: environment, user: user).members
    }

    fileprivate var cells: [TableCell] {
        StoredPartition(name: partition, environment: environment, user: user).cells
    }
}

extension SessionState {
    fileprivate var tone: TableCell.Tone? {
        switch self {
        case .signedIn, .guest: .good
        case .signedOut: nil
        default: .warning
        }
    }
}

extension JSONText {
    fileprivate static func date(_ date: Date) -> JSONText { .string(date.text) }
}
