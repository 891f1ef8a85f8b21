import ArgumentParser
import Foundation

/// What every verb takes.
struct StoreOptions: ParsableArguments {
    @Option(name: .customLong("store"), help: ArgumentHelp(
        "The store's folder. Default: the environment variable LARDER_STORE.", valueName: "folder"))
    var path: String?

    @Flag(help: "Print JSON of a versioned shape, errors too.")
    var json = false

    func folder() throws(Failure) -> StoreFolder {
        let path = path ?? ProcessInfo.processInfo.environment["LARDER_STORE"]
        guard let path, !path.isEmpty else {
            throw Failure(usage: "no store: name its folder by --store or in the environment variable LARDER_STORE")
        }
        guard !path.utf8.contains(0) else { throw Failure(usage: "the store's name holds a zero byte") }
        return try StoreFolder(url: URL(filePath: path))
    }
}
