import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

/// Which rows a verb changes: the one that is named, or all of some states.
struct RowOptions<State: CaseIterable & CustomStringConvertible & Hashable & Sendable>: ParsableArguments {
    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var permission: WritePermission
    @ArgumentParser.Argument(
        help: ArgumentHelp("The id; with --all, none.", valueName: "id"),
        transform: { text in
            guard let id = UUID(uuidString: text) else { throw ValidationError("\(text) is no id.") }
            return id
        })
    var id: UUID?
    @Flag(help: "All that the verb can work on, of all partitions unless one is named.")
    var all = false
    @Option(help: ArgumentHelp("With --all: only those in this state.", valueName: "state"))
    var state: StateName<State>?

    func validate() throws {
        guard (id != nil) != all else { throw ValidationError("Give either an id or --all.") }
        guard all || state == nil && partition.name == nil && partition.environment == nil else {
            throw ValidationError("--state, --partition and --env go with --all.")
        }
    }
}

/// A verb that changes rows of the store's tables, with `--write` only.
protocol RowChange: Verb {
    associatedtype State: CaseIterable & CustomStringConvertible & Hashable & Sendable

    /// What the rows are: `mutations`.
    static var row: String { get }
    /// What the verb is called after that, and in `did` of its result.
    static var verb: String { get }
    /// The same as something that was done.
    static var done: String { get }
    /// What is done with `--write` only.
    static var purpose: String { get }
    /// The states of the rows that `--all` means.
    static var states: Set<State> { get }

    var target: RowOptions<State> { get }

    static func ids(
        _ database: OperationsDatabase, in states: Set<State>, of owners: RowOwners
    ) throws -> [UUID]

    static func unknown(_ id: UUID) -> Failure

    /// The change to make, once all that the arguments name has been read.
    ///
    /// - Returns: Gives the mutations that were set aside for a row; nil of a verb that sets none aside.
    func change() throws -> (UUID, OperationsDatabase) async throws -> [UUID]?
}

extension RowChange {
    static var name: String { "\(row)s \(verb)" }
    var store: StoreOptions { target.store }

    func perform(_ output: Output) async throws {
        guard let id = target.id else { return try await performAll(output) }
        try target.permission.require(for: Self.purpose)
        let change = try change()
        let done = try await store.folder().withOperations(.writing, output) { try await change(id, $0) }
        guard let others = done else { throw Self.unknown(id) }
        try output.result(
            .object(
                [("id", .string(id.text)), ("did", .string(Self.verb))]
                    + (others.map { [("setAside", .strings($0.map(\.text)))] } ?? [])),
            text: Self.text(id, others))
    }

    private static func text(_ id: UUID, _ others: [UUID]?) -> String {
        "\(done) \(id.text)" + (others ?? []).map { "\nset aside mutation \($0.text)" }.joined()
    }

    /// A row that cannot be changed is told, and the others are changed.
    private func performAll(_ output: Output) async throws {
        let (folder, change) = (try store.folder(rowsOf: target.partition), try change())
        let states = target.state.map { [$0.state] } ?? Self.states
        func ids(_ database: OperationsDatabase) throws -> [UUID] {
            try Self.ids(database, in: states, of: RowOwners(database, of: target.partition))
        }
        guard target.permission.write else {
            let count = try await folder.withOperations(.reading, output) { try ids($0).count } ?? 0
            throw Failure(
                .notConfirmed, .refused,
                "Here it would change \(count.counted(Self.row)); \(Self.purpose) wants --write")
        }
        var changed: [(id: UUID, setAside: [UUID])] = []
        var refused: [(id: UUID, failure: Failure)] = []
        try await folder.withOperations(.writing, output) { database in
            for id in try ids(database) {
                do { changed.append((id, try await change(id, database) ?? [])) } catch {
                    refused.append((id, Failure(error)))
                }
            }
        }
        try output.result(
            .object([
                ("did", .string(Self.verb)),
                (
                    "changed",
                    .array(
                        changed.map {
                            .object([("id", .string($0.id.text)), ("setAside", .strings($0.setAside.map(\.text)))])
                        })
                ),
                (
                    "refused",
                    .array(
                        refused.map {
                            .object([
                                ("id", .string($0.id.text)), ("code", .string($0.failure.code)),
                                ("message", .string($0.failure.message)),
                                ("hint", .string(output.hint(for: $0.failure))),
                            ])
                        })
                ),
            ]),
            text: changed.map { Self.text($0.id, $0.setAside) }.joined(separator: "\n"))
        if changed.isEmpty, refused.isEmpty { output.note("there were no \(Self.row)s to be \(Self.done)") }
        if !refused.isEmpty { throw Ended(.failure, telling: refused.map { ($0.id.text, $0.failure) }, output) }
    }
}
