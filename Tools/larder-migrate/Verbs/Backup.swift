import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

struct Backup: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copies the store into a new folder, and looks after the copies.",
        subcommands: [Create.self, List.self, Verify.self, Prune.self], defaultSubcommand: Create.self)
}

extension Backup {
    struct Create: Verb {
        static let name = "backup"
        static let configuration = CommandConfiguration(
            abstract: "Copies the store into a new folder, while programs go on using it.",
            discussion: """
                The folder is named by the time and holds manifest.json, larder.sqlite and a file for each cache, with \
                their checksums. A damaged cache is left out, and named: it can be fetched again. Credentials are in it, \
                sealed as in the store; the key that opens them is not.
                """)

        @OptionGroup var store: StoreOptions
        @OptionGroup var lock: LockOptions
        @Option(
            help: ArgumentHelp(
                "The folder in which the new one is made. Default: the store's name with .backups, beside it.",
                valueName: "folder"))
        var to: String?

        func perform(_ output: Output) async throws {
            let store = try MigratedStore(store, timeout: lock.duration(), output)
            let backups = to.map { URL(filePath: $0) } ?? MigrationPlan.backupFolder(of: store.url)
            let backup = try await make(of: store, into: backups)
            let omitted = backup.manifest.partitions.filter { $0.omitted != nil }
            for partition in omitted {
                output.note("the cache of partition \(partition.name) is left out: \(partition.omitted ?? "")")
            }
            let bytes = backup.manifest.files.map(\.size).reduce(0, +)
            try output.result(
                .object([
                    ("backup", .string(backup.folder.path)),
                    ("store", backup.manifest.store.map(JSONText.string) ?? .null),
                    ("files", .int(backup.manifest.files.count)), ("bytes", .int(bytes)),
                    ("partitions", .strings(backup.manifest.partitions.map(\.name))),
                    ("omitted", .strings(omitted.map(\.name))),
                ]),
                text: backup.folder.path)
        }

        /// Under the lock, or the backup could hold half of a restoration; without it where nothing may be written.
        private func make(of store: MigratedStore, into backups: URL) async throws -> StoreBackup {
            do {
                return try await store.withLock(for: "backup") { _ in
                    try StoreBackup.make(of: store.url, into: backups, options: store.options)
                }
            } catch let error as OperationsError where error.code == .notWritable {
                return try StoreBackup.make(of: store.url, into: backups, options: store.options)
            }
        }
    }
}
