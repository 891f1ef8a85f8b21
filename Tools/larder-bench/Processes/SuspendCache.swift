import ArgumentParser
import Foundation
import LarderRecords

/// A process that has suspended its cache, to be killed.
struct SuspendCache: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend-cache",
        abstract: "Writes to a cache, suspends it, says so, and waits for its input's end.",
        shouldDisplay: false)

    @ArgumentParser.Argument var path: String

    func run() async throws {
        let cache = try RecordCache(folder: path, stamp: "bench")
        try await ItemShop().fill(cache, 0..<1)
        try await cache.suspend(until: .now + .seconds(60))
        try FileHandle.standardOutput.write(contentsOf: Data("suspended\n".utf8))
        while !FileHandle.standardInput.availableData.isEmpty {}
    }
}
