import ArgumentParser
import Larder
import LarderCommandLine
import LarderOperations

struct Baseline: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Puts down the history of a database that has the tables and not the history.",
        discussion: """
            For larder.sqlite that was copied by other means than backup. Its tables must be just those after one of \
            the migrations, or it is refused.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        let entries = try await store.withLock(for: "baseline") { lock in
            try OperationsDatabase.baseline(
                folder: store.url, holding: lock, waiting: store.options.lockTimeout,
                files: store.options.files)
        }
        try output.result(
            .object([("recorded", .array(entries.map(\.json)))]),
            text: entries.isEmpty
                ? "the history was there" : entries.map { "recorded \($0.label)" }.joined(separator: "\n"))
    }
}
