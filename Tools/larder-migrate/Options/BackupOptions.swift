import ArgumentParser
import Foundation
import Larder
import LarderCommandLine

/// Where a backup is put before data is changed.
struct BackupOptions: ParsableArguments {
    @Option(
        name: .customLong("backups"),
        help: ArgumentHelp(
            "The folder in which the backup is made first. Default: the store's name with .backups, beside it.",
            valueName: "folder"))
    var path: String?
    @Flag(name: .customLong("no-backup"), help: "Change data without a backup.")
    var isOmitted = false

    func validate() throws {
        guard path == nil || !isOmitted else { throw ValidationError("Give either --backups or --no-backup.") }
    }

    func folder(of store: URL) -> URL? {
        isOmitted ? nil : path.map { URL(filePath: $0) } ?? MigrationPlan.backupFolder(of: store)
    }
}
