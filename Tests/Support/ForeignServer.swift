package import Foundation

/// The GraphQL server of `Tests/Server`, which is not ours, as a child process on the loopback interface.
///
/// Tests that use it are enabled where `Tools/test` has made its Python:
/// `@Test(.enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))`.
package struct ForeignServer: Sendable {
    /// Why a test that needs the server is skipped.
    package static let requirement =
        "needs LARDER_TEST_PYTHON, a Python with Tests/Server/requirements.txt; "
        + "run Tools/test, which makes one"

    package static var isAvailable: Bool { ServerProcess.python != nil }

    /// The schema that it serves, in the schema definition language.
    package static var schema: String {
        get throws {
            try String(contentsOf: ServerProcess.folder.appending(path: "catalogue.graphqls"), encoding: .utf8)
        }
    }

    package let url: URL
    private let process: ServerProcess

    /// Runs `body` with a server, which has ended when this returns or throws.
    ///
    /// - Parameter script: Which server of `Tests/Server`, with its arguments.
    package static func run<Result>(
        _ script: String = "server.py", _ arguments: String..., startingWithin timeout: Duration = .seconds(30),
        _ body: (ForeignServer) async throws -> Result
    ) async throws -> Result {
        let process = try await ServerProcess.start(script, arguments, within: timeout)
        return try await withStarted(process, stop: { await $0.stop() }) { process in
            guard let url = URL(string: "http://127.0.0.1:\(process.words[0])/graphql") else {
                throw ServerProcess.DidNotStart(description: "\(process.words[0]) is no port")
            }
            return try await body(ForeignServer(url: url, process: process))
        }
    }

    /// Ends the server and waits for it. Stopping twice does nothing.
    package func stop() async { await process.stop() }

    /// Whether the process is there.
    package var isRunning: Bool { get async { await process.isRunning } }
}
