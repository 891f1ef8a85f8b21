package import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server of `Tests/Server`, written in Python and not ours, as a child process on the loopback interface.
package actor ServerProcess {
    package struct DidNotStart: Error, CustomStringConvertible {
        package var description: String
    }

    /// The Python that `Tools/test` makes for the servers; nil where it has not.
    package static var python: String? {
        guard let path = ProcessInfo.processInfo.environment["LARDER_TEST_PYTHON"],
            FileManager.default.isExecutableFile(atPath: path)
        else { return nil }
        return path
    }

    package static let folder = packageRoot.appending(path: "Tests/Server")

    /// What it said when it listened: the port, and what follows it.
    package nonisolated let words: [String]
    private let process: Process
    /// The server ends when its standard input does: at `stop`, or when this process dies in whatever way.
    private let input: Pipe
    private let output: Pipe

    private init(words: [String], process: sending Process, input: sending Pipe, output: sending Pipe) {
        self.words = words
        self.process = process
        self.input = input
        self.output = output
    }

    /// Starts a server and waits until it says `listening PORT …`.
    package static func start(
        _ script: String, _ arguments: [String] = [], environment: [String: String] = [:],
        within timeout: Duration = .seconds(30)
    ) async throws -> ServerProcess {
        guard let python else { throw DidNotStart(description: "LARDER_TEST_PYTHON names no Python") }
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments = ["-B", folder.appending(path: script).path] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (input, output) = (Pipe.uninherited(), Pipe.uninherited())
        process.standardInput = input
        process.standardOutput = output
        try process.start()
        do {
            let words = try await words(from: output.fileHandleForReading, until: .now + timeout)
            return ServerProcess(words: words, process: process, input: input, output: output)
        } catch {
            process.terminate()
            await process.ended()
            throw error
        }
    }

    /// Reads the line with which the server says that it listens.
    private static func words(
        from output: FileHandle, until deadline: SuspendingClock.Instant
    ) async throws -> [String] {
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
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        guard words.count >= 2, words[0] == "listening", Int(words[1]) != nil else {
            throw DidNotStart(description: "The server said: \(text)")
        }
        return Array(words[1...])
    }

    /// Ends the server and waits for it. Stopping twice does nothing.
    package func stop() async {
        try? input.fileHandleForWriting.close()
        if process.isRunning { process.terminate() }
        await process.ended()
        try? output.fileHandleForReading.close()
    }

    /// Whether the process is there.
    package var isRunning: Bool { process.isRunning }

    /// The server's process.
    package var identifier: Int32 { process.processIdentifier }
}

/// Runs `body` with what was started, which is stopped when this returns or throws.
package func withStarted<Server, Result>(
    _ server: Server, stop: (Server) async -> Void, _ body: (Server) async throws -> Result
) async throws -> Result {
    do {
        let result = try await body(server)
        await stop(server)
        return result
    } catch {
        await stop(server)
        throw error
    }
}
