package import Foundation
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The GraphQL server of `Tests/Server`, which is not ours, as a child process on the loopback interface.
///
/// Tests that use it are enabled where `Tools/test` has made its Python:
/// `@Test(.enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))`.
package actor ForeignServer {
    /// Why a test that needs the server is skipped.
    package static let requirement = "needs LARDER_TEST_PYTHON, a Python with Tests/Server/requirements.txt; "
        + "run Tools/test, which makes one"

    package static var isAvailable: Bool { python != nil }

    private static var python: String? {
        guard let path = ProcessInfo.processInfo.environment["LARDER_TEST_PYTHON"],
            FileManager.default.isExecutableFile(atPath: path)
        else { return nil }
        return path
    }

    private static let folder = packageRoot.appending(path: "Tests/Server")

    /// The schema that it serves, in the schema definition language.
    package static var schema: String {
        get throws { try String(contentsOf: folder.appending(path: "catalogue.graphqls"), encoding: .utf8) }
    }

    package struct DidNotStart: Error, CustomStringConvertible {
        package var description: String
    }

    package nonisolated let url: URL
    private let process: Process
    /// The server ends when its standard input does: at `stop`, or when this process dies in whatever way.
    private let input: Pipe

    private init(url: URL, process: sending Process, input: sending Pipe) {
        self.url = url
        self.process = process
        self.input = input
    }

    /// Runs `body` with a server, which has ended when this returns or throws.
    package static func run<Result>(
        startingWithin patience: Duration = .seconds(30), _ body: (ForeignServer) async throws -> Result
    ) async throws -> Result {
        let server = try await start(within: patience)
        do {
            let result = try await body(server)
            await server.stop()
            return result
        } catch {
            await server.stop()
            throw error
        }
    }

    /// Starts a server and waits until it listens.
    private static func start(within patience: Duration) async throws -> ForeignServer {
        guard let python else { throw DidNotStart(description: requirement) }
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments = ["-B", folder.appending(path: "server.py").path]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        do {
            let port = try await port(from: output.fileHandleForReading, of: process, until: .now + patience)
            guard let url = URL(string: "http://127.0.0.1:\(port)/graphql") else {
                throw DidNotStart(description: "\(port) is no port")
            }
            return ForeignServer(url: url, process: process, input: input)
        } catch {
            process.terminate()
            process.waitUntilExit()
            throw error
        }
    }

    /// Reads the line with which the server says that it listens.
    private static func port(
        from output: FileHandle, of process: Process, until deadline: ContinuousClock.Instant
    ) async throws -> Int {
        var text = ""
        while !text.contains("\n") {
            guard .now < deadline else { throw DidNotStart(description: "The server was not ready in time: \(text)") }
            var waiting = pollfd(fd: output.fileDescriptor, events: Int16(POLLIN), revents: 0)
            if poll(&waiting, 1, 0) > 0 {
                let bytes = output.availableData
                guard !bytes.isEmpty else { throw DidNotStart(description: "The server ended at once: \(text)") }
                text += String(decoding: bytes, as: UTF8.self)
            } else {
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 2, words[0] == "listening", let port = Int(words[1]) else {
            throw DidNotStart(description: "The server said: \(text)")
        }
        return port
    }

    /// Ends the server and waits for it. Stopping twice does nothing.
    package func stop() {
        try? input.fileHandleForWriting.close()
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }

    /// Whether the process is there.
    package var isRunning: Bool { process.isRunning }
}
