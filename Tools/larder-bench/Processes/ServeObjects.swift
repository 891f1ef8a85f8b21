import ArgumentParser
import Foundation
import ObjectServer

/// A server of objects in a process of its own, so that what it costs is not counted with its clients.
struct ServeObjects: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve-objects", abstract: "Serves objects whose bytes are forgotten, until its input ends.",
        shouldDisplay: false)

    func run() async throws {
        let server = try await ObjectServer.start(keeping: .sizes)
        try FileHandle.standardOutput.write(contentsOf: Data("\(server.url.absoluteString)\n".utf8))
        while !FileHandle.standardInput.availableData.isEmpty {}
        try await server.stop()
    }
}
