import ArgumentParser
import Larder
import LarderCommandLine

struct Up: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Migrates the store to what this version works with.",
        discussion: """
            Takes the steps that plan shows, in their order. A backup is made first. Programs of this version that \
            have the store open go on.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var backup: BackupOptions
    @OptionGroup var lock: LockOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        try store.takeBackUnfinished()
        // A run that has nothing to do waits for no lock.
        let folder = backup.folder(of: store.url)
        guard try !MigrationPlan(for: store.status(), backingUpInto: folder).steps.isEmpty else {
            return try output.result(
                .object([("steps", .array([])), ("backup", .null)]), text: "nothing was to be done")
        }
        let (plan, made) = try await store.withLock(for: "up") { lock in
            try MigrationPlan.carryOut(
                on: store.url, backingUpInto: folder, holding: lock, options: store.options)
        }
        try output.result(
            .object([("steps", plan.json), ("backup", made.map { .string($0.path) } ?? .null)]),
            text: plan.text + (made.map { "\nthe backup is \($0.path)" } ?? ""))
    }
}
