import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

struct CredentialsVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "credentials",
        abstract: "Tells which credentials are kept, of what age, and what was put into quarantine. Never a secret.",
        discussion: "One a line: partition, environment and user, kind, when it was stored; or why it is in quarantine."
    )

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let found = try await store.folder().sessions(output)
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
                                                    ("kind", .string(held.kind)), ("reason", .string(held.reason)),
                                                    ("time", .date(held.time)),
                                                ])
                                            })
                                    ),
                                ])
                        })
                )
            ]),
            text: found.flatMap { status in
                status.credentials.map { "\(status.label), \($0.kind), stored \($0.updated.ISO8601Format())" }
                    + status.quarantined.map {
                        "\(status.label), \($0.kind), in quarantine since \($0.time.ISO8601Format()): \($0.reason)"
                    }
            }.joined(separator: "\n"))
    }
}

struct SessionVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Tells of each partition whether a user is signed in, since when, and why.")

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let found = try await store.folder().sessions(output)
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
            text: found.map { "\($0.label): \(Output.oneLine("\($0.standing)"))" }.joined(separator: "\n"))
    }
}

extension StoreFolder {
    fileprivate func sessions(_ output: Output) async throws -> [SessionStatus] {
        try await withOperations(.reading, output) { try $0.credentials.overview().map { SessionStatus($0) } } ?? []
    }
}

extension SessionStatus {
    fileprivate var owner: [(name: String, value: JSONText)] {
        StoredPartition(name: partition, environment: environment, user: user).members
    }

    fileprivate var label: String {
        "\(partition) "
            + Output.oneLine(StoredPartition(name: partition, environment: environment, user: user).label)
    }
}

extension JSONText {
    fileprivate static func date(_ date: Date) -> JSONText { .string(date.ISO8601Format()) }
}
