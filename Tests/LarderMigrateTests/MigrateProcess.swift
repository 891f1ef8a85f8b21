import Foundation
import LarderTestSupport
import Testing

/// The built tool, and the program larder-crash, run as child processes.
enum MigrateProcess {
    /// What a run left.
    struct Outcome {
        /// Negative where a signal ended it.
        var status: Int32
        var output: String
        var errors: String
    }

    static let isBuilt = BuiltProgram.exists("larder-migrate") && BuiltProgram.exists("larder-crash")
    static let requirement = "larder-migrate and larder-crash are not built"

    /// Runs the tool to its end.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], in folder: URL? = nil
    ) async throws -> Outcome {
        try await Running("larder-migrate", arguments, environment: environment, in: folder).finish()
    }

    /// Runs the other program to its end.
    static func crash(_ arguments: String...) async throws -> Outcome {
        try await Running("larder-crash", arguments).finish()
    }

    final class Running {
        let process = Process()
        private let folder: URL
        /// It ends when this does: should the tests die, it does not go on.
        private let input = Pipe.uninherited()

        init(
            _ program: String, _ arguments: [String], environment: [String: String] = [:], in current: URL? = nil
        ) throws {
            folder = FileManager.default.temporaryDirectory.appending(path: "larder-run-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for name in ["output", "errors"] { try Data().write(to: folder.appending(path: name)) }
            process.executableURL = BuiltProgram.file(program)
            process.arguments = arguments
            process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("LARDER_") }
                .merging(environment) { $1 }
            if let current { process.currentDirectoryURL = current }
            process.standardInput = input
            try process.start(
                printing: folder.appending(path: "output"), folder.appending(path: "errors"))
        }

        var output: String { read("output") }

        var lines: [String] {
            output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        }

        private func read(_ name: String) -> String {
            String(decoding: (try? Data(contentsOf: folder.appending(path: name))) ?? Data(), as: UTF8.self)
        }

        /// Waits until it has said a line, or has ended, for a minute at most.
        func wait(forLine line: String) async throws {
            try await wait { $0.contains(line) }
        }

        func wait(until isDone: ([String]) -> Bool) async throws {
            let deadline = SuspendingClock.now + .seconds(60)
            while !isDone(lines), process.isRunning, .now < deadline {
                try await Task.sleep(for: .milliseconds(5))
            }
            try #require(isDone(lines) || !process.isRunning, "the process has not said it within a minute")
        }

        func kill(_ signal: Int32 = SIGKILL) { Foundation.kill(process.processIdentifier, signal) }

        func finish() async throws -> Outcome {
            await process.ended()
            defer { try? FileManager.default.removeItem(at: folder) }
            let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            return Outcome(status: status, output: output, errors: read("errors"))
        }
    }
}
