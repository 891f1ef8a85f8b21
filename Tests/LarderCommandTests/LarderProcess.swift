import Foundation
import LarderTestSupport

/// What a run of the built command left.
struct Outcome {
    var status: Int32
    /// Standard output and standard error.
    var output: String
    var errors: String

    /// The output with sizes, which depend on the page layout, and ages set to 0.
    var outputWithoutSizes: String { output.replacing(/"(bytes|before|after|age)":\d+/) { "\"\($0.1)\":0" } }
}

/// The built command and the programs beside it, run as child processes.
enum LarderProcess {
    /// A built program.
    static func executable(_ name: String = "larder") -> URL {
        BuiltProgram.file(name)
    }

    /// Runs another program than the command to its end.
    static func run(
        program: String, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> Outcome {
        try await start(executable(program), arguments, input: "", environment: environment).finish()
    }

    /// Runs the command to its end.
    static func run(
        _ arguments: [String], input: String = "", environment: [String: String] = [:]
    ) async throws -> Outcome {
        try await start(executable(), arguments, input: input, environment: environment).finish()
    }

    /// Runs the command in a shell, in whose script `"$@"` is the command with its arguments.
    static func run(shell script: String, _ arguments: [String]) async throws -> Outcome {
        let all = ["-c", script, "sh", executable().path] + arguments
        return try await start(URL(filePath: "/bin/sh"), all, input: "", environment: [:]).finish()
    }

    static func start(_ arguments: [String], environment: [String: String] = [:]) throws -> Running {
        try start(executable(), arguments, input: "", environment: environment)
    }

    private static func start(
        _ program: URL, _ arguments: [String], input: String, environment: [String: String]
    ) throws -> Running {
        let folder = FileManager.default.temporaryDirectory.appending(path: "larder-run-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // Files take any amount of output; a pipe that nobody empties would stop the command.
        for name in ["output", "errors"] {
            try Data().write(to: folder.appending(path: name))
        }
        try Data(input.utf8).write(to: folder.appending(path: "input"))
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("LARDER_") }
            .merging(environment) { $1 }
        try process.start(
            reading: folder.appending(path: "input"), printing: folder.appending(path: "output"),
            folder.appending(path: "errors"))
        return Running(process: process, folder: folder)
    }

    struct Running {
        fileprivate let process: Process
        fileprivate let folder: URL

        /// What it has printed so far.
        var output: String { read("output") }

        /// What it has said so far.
        var errors: String { read("errors") }

        /// Waits until it has printed so many lines. Gives up when it has ended, or after a minute.
        func waitForLines(_ count: Int) async throws {
            let deadline = SuspendingClock.now + .seconds(60)
            while output.count(where: { $0 == "\n" }) < count, process.isRunning, .now < deadline {
                try await Task.sleep(for: .milliseconds(10))
            }
        }

        func interrupt() { process.interrupt() }

        /// Waits for its end.
        func finish() async throws -> Outcome {
            await process.ended()
            defer { try? FileManager.default.removeItem(at: folder) }
            // A signal is no status that the command promises.
            let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            return Outcome(status: status, output: read("output"), errors: read("errors"))
        }

        private func read(_ name: String) -> String {
            let bytes = (try? Data(contentsOf: folder.appending(path: name))) ?? Data()
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
