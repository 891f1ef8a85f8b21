import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

struct Restore: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Brings a backup back, while programs go on using the store.",
        discussion: """
            What is there is backed up first. Caches become what they were. Of larder.sqlite comes back what the store \
            has lost; what has happened since stays: mutations that were queued, answered or settled, the current \
            environment, credentials and sessions. A mutation that was settled since is not sent again. What is not \
            provably unsent is set aside: above all what is pending in a backup that is restored whole, where \
            larder.sqlite was lost or the folder is new, since the store that made the backup may have sent it. \
            --nothing-sent-since says that it has not. A backup of another store is refused; into a new or empty \
            folder any is restored whole.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var backup: BackupOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var confirmation: Confirmation
    @Flag(
        help: """
            No program has sent mutations of this store since the backup was made: those that are unsent in it stay \
            pending.
            """)
    var nothingSentSince = false
    @ArgumentParser.Argument(help: ArgumentHelp("The backup: a folder with a manifest.json.", valueName: "backup"))
    var folder: String

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), mayBeNew: true, output)
        let backup = try StoreBackup(at: URL(filePath: folder), files: store.options.files)
        // A backup that is refused leaves no folder behind where there was none.
        if try !store.hasAnything { try backup.verify(files: store.options.files) }
        // A lost database cannot say which environment is protected.
        if try !OperationsDatabase.isLost(in: store.url, store.options.files) {
            try store.requireConfirmed(confirmation, to: "restore a backup", output)
        }
        let report = try await store.withLock(for: "restore") { lock in
            try StoreRestoration.bringBack(
                backup, to: store.url, backingUpInto: self.backup.folder(of: store.url), holding: lock,
                nothingSentSince: nothingSentSince, options: store.options)
        }
        for name in report.database?.leftOut ?? [] {
            output.note("the partition \(name) was forgotten since, and is left out")
        }
        try output.result(report.json, text: report.text)
    }
}

extension StoreRestoration.Report {
    fileprivate var json: JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("backup", backup.map { .string($0.path) } ?? .null), ("caches", .strings(caches)),
        ]
        if let database {
            members.append(
                (
                    "mutations",
                    .object([
                        ("restored", .int(database.mutations)), ("settledSince", .int(database.settledSince)),
                        ("kept", .int(database.kept)), ("setAside", .int(database.setAside)),
                    ])
                ))
            members.append(("partitions", .int(database.partitions)))
            members.append(("leftOut", .strings(database.leftOut)))
        }
        return .object(members)
    }

    fileprivate var text: String {
        var lines = ["restored \(caches.count.counted("cache"))"]
        if let database {
            lines[0] += ", \(database.mutations.counted("mutation")) and \(database.partitions.counted("partition"))"
            if database.setAside > 0 {
                lines.append(
                    "set aside: \(database.setAside.counted("mutation")) that may have been sent, or wait for what is "
                        + "not there any more")
            }
            if database.settledSince > 0 {
                lines.append("settled since, and not sent again: \(database.settledSince.counted("mutation"))")
            }
            if database.kept > 0 { lines.append("unchanged: \(database.kept.counted("mutation"))") }
        }
        if let backup { lines.append("what was there is in \(backup.path)") }
        return lines.joined(separator: "\n")
    }
}
