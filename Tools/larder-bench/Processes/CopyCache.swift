import ArgumentParser
import LarderRecords

/// Copies a record cache that another process writes to, as a backup does.
struct CopyCache: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy-cache", abstract: "Copies a record cache as a backup does.", shouldDisplay: false)

    @Argument var folder: String
    @Argument var target: String

    func run() throws { try CacheFolder(path: folder, stamp: "bench").copy(to: target) }
}
