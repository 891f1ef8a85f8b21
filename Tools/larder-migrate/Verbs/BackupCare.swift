import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles

/// Where the backups of a store are.
struct BackupFolderOptions: ParsableArguments {
    @Option(
        name: .customLong("backups"),
        help: ArgumentHelp(
            "The folder that has the backups. Default: the store's name with .backups, beside it.", valueName: "folder")
    )
    var path: String?

    func folder(of store: URL) -> URL { path.map { URL(filePath: $0) } ?? MigrationPlan.backupFolder(of: store) }

    /// The backups in the folder, oldest first, and the subfolders that cannot be read as one.
    ///
    /// - Throws: Where there is no such folder, unless it is the one of a store that has no backup yet.
    func found(of store: URL) throws -> (backups: [StoreBackup], unread: [(URL, Failure)]) {
        let (folder, files) = (folder(of: store), FileSystem())
        let named = InputFile(role: "The backups", path: folder.path)
        switch try named.status()?.kind {
        case .folder: break
        case nil where path == nil:
            // The backups of a store that was lost can be looked at; without the store either, a name is wrong.
            guard try files.status(of: store.path) != nil else {
                throw Failure(
                    .noStore, .failure, "There is no store at \(store.path), and no backups at \(folder.path)")
            }
            return ([], [])
        case nil: throw named.unusable("there is no such folder")
        default: throw named.unusable("it is no folder")
        }
        var (backups, unread) = ([StoreBackup](), [(URL, Failure)]())
        let names: [String]
        do throws(FileError) { names = try files.names(in: folder.path) } catch { throw named.unusable(error) }
        for name in names.sorted() where !name.hasPrefix(".") {
            let place = folder.appending(path: name)
            do {
                guard try files.status(of: place.path)?.kind == .folder else { continue }
                backups.append(try StoreBackup(at: place))
            } catch { unread.append((place, Failure(error))) }
        }
        return (
            backups.sorted {
                ($0.manifest.created, $0.folder.lastPathComponent) < ($1.manifest.created, $1.folder.lastPathComponent)
            }, unread
        )
    }
}

extension Backup {
    struct List: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Lists the backups of a folder, oldest first.",
            discussion: "One a line: folder, when it was made, bytes, caches, the last migration, of which store it is."
        )
        static let name = "backup list"

        @OptionGroup var store: StoreOptions
        @OptionGroup var backups: BackupFolderOptions

        func perform(_ output: Output) async throws {
            let (found, unread) = try backups.found(of: store.url())
            try output.result(
                .object([
                    ("backups", .array(found.map(\.json))),
                    ("unread", .array(unread.map { $1.json(of: $0, output) })),
                ]), table: found.map(\.cells))
            if found.isEmpty, unread.isEmpty {
                output.note("there are no backups at \(try backups.folder(of: store.url()).path)")
            }
            for hint in output.tell(unread.map { ($0.path, $1) }) { output.note("hint: \(hint)") }
        }
    }

    struct Verify: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Compares every file of backups with the checksums of when it was written.",
            discussion: """
                Of one backup, or of all in the folder. Status 5 where one is damaged, and 3 where there is none: \
                nothing was verified then.
                """)
        static let name = "backup verify"

        @OptionGroup var store: StoreOptions
        @OptionGroup var backups: BackupFolderOptions
        @ArgumentParser.Argument(help: ArgumentHelp("The backup's folder.", valueName: "backup"))
        var backup: String?

        func perform(_ output: Output) async throws {
            var (found, damaged): ([StoreBackup], [(URL, Failure)])
            if let backup {
                (found, damaged) = ([try StoreBackup(at: URL(filePath: backup))], [])
            } else {
                (found, damaged) = try backups.found(of: store.url())
            }
            guard !found.isEmpty || !damaged.isEmpty else {
                throw Failure(.noBackup, .miss, "There are no backups at \(try backups.folder(of: store.url()).path)")
            }
            var verified: [String] = []
            for backup in found {
                do {
                    try backup.verify()
                    verified.append(backup.folder.path)
                } catch { damaged.append((backup.folder, Failure(error))) }
            }
            try output.result(
                .object([
                    ("verified", .strings(verified)), ("damaged", .array(damaged.map { $1.json(of: $0, output) })),
                ]), text: verified.joined(separator: "\n"))
            if !damaged.isEmpty {
                throw Ended(.damaged, telling: damaged.map { ($0.path, $1) }, output)
            }
        }
    }

    struct Prune: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Removes all backups of the store but the newest. Wants --write.",
            discussion: """
                Without --write it tells which it would remove. If one of those that stay is damaged, nothing is \
                removed. Backups of other stores, and folders that are none, \
                stay where they are.
                """)
        static let name = "backup prune"

        @OptionGroup var store: StoreOptions
        @OptionGroup var backups: BackupFolderOptions
        @OptionGroup var permission: WritePermission
        @OptionGroup var lock: LockOptions
        @Option(help: ArgumentHelp("How many of the newest to keep, at least 1.", valueName: "n"))
        var keep: Int

        func validate() throws {
            guard keep > 0 else { throw ValidationError("--keep must be at least 1.") }
        }

        func perform(_ output: Output) async throws {
            let store = try MigratedStore(store, timeout: lock.duration(), output)
            guard let identity = try store.status().schema?.identity else {
                throw Failure(.noStore, .failure, "\(store.url.path) has no identity, by which its backups are known")
            }
            func found() throws -> (pruned: [StoreBackup], kept: [StoreBackup]) {
                let own = try backups.found(of: store.url).backups.filter { $0.manifest.store == identity }
                return (own.dropLast(keep), own.suffix(keep))
            }
            let (pruned, kept) =
                if permission.write {
                    // What another verb makes or removes until it gives the lock away counts.
                    try await store.withLock(for: "backup prune") { _ in
                        let found = try found()
                        // The ones that stay must be whole before another goes.
                        if !found.pruned.isEmpty { for backup in found.kept { try backup.verify() } }
                        for backup in found.pruned { try Self.remove(backup.folder.path) }
                        return found
                    }
                } else {
                    try found()
                }
            let paths = pruned.map(\.folder.path)
            try output.result(
                .object([
                    ("isWritten", .boolean(permission.write)), ("pruned", .strings(paths)),
                    ("remaining", .strings(kept.map(\.folder.path))),
                ]),
                text: paths.map { (permission.write ? "removed " : "would remove ") + $0 }.joined(separator: "\n"))
            if !permission.write, !pruned.isEmpty { output.note("nothing was removed; --write does it") }
        }

        /// Under a name by which the next backup knows what a killed one has left: what is left of it is no backup.
        private static func remove(_ path: String) throws {
            let files = FileSystem()
            let folder = URL(filePath: path).deletingLastPathComponent()
            let draft = folder.appending(path: ".draft-\(UUID().uuidString)").path
            try files.rename(path, draft)
            try files.removeTree(draft)
        }
    }
}

extension StoreBackup {
    private var bytes: Int { manifest.files.map(\.size).reduce(0, +) }

    fileprivate var json: JSONText {
        .object([
            ("backup", .string(folder.path)), ("created", .string(manifest.created.text)),
            ("bytes", .int(bytes)), ("partitions", .strings(manifest.partitions.map(\.name))),
            ("migrations", manifest.schema.map(JSONText.int) ?? .null),
            ("store", manifest.store.map(JSONText.string) ?? .null),
        ])
    }

    fileprivate var cells: [TableCell] {
        [
            TableCell(folder.path),
            TableCell(manifest.created.shown),
            TableCell("\(bytes)"), TableCell("\(manifest.partitions.count)"),
            TableCell(manifest.schema.map { "\($0)" } ?? "-"), TableCell(manifest.store ?? "-", .faint),
        ]
    }
}

extension Failure {
    fileprivate func json(of place: URL, _ output: Output) -> JSONText {
        .object([
            ("backup", .string(place.path)), ("code", .string(code)), ("message", .string(message)),
            ("hint", .string(output.hint(for: self))),
        ])
    }
}
