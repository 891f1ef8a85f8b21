package import ArgumentParser
package import Foundation

/// What every verb takes.
package struct StoreOptions: ParsableArguments {
    @Option(
        name: .customLong("store"),
        help: ArgumentHelp(
            "The store's folder. Default: the environment variable LARDER_STORE.", valueName: "folder"))
    package var path: String?

    @Flag(help: "Print JSON of a versioned shape, errors too.")
    package var json = false

    /// The environment variable that names the environment to work with, for every tool.
    package static let environmentVariable = "LARDER_ENV"

    package init() {}

    package func url() throws(Failure) -> URL {
        let path = path ?? ProcessInfo.processInfo.environment["LARDER_STORE"]
        guard let path, !path.isEmpty else {
            throw Failure(usage: "No store: name its folder by --store or in the environment variable LARDER_STORE")
        }
        guard !path.utf8.contains(0) else { throw Failure(usage: "The store's name holds a zero byte") }
        return URL(filePath: path)
    }
}
