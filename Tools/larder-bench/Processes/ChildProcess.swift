import Foundation

/// Other programs that take part in a measurement.
enum ChildProcess {
    /// This program once more.
    static func own(_ arguments: [String]) throws -> Process {
        let child = Process()
        #if os(Linux)
        child.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        #else
        child.executableURL = Bundle.main.executableURL
        #endif
        child.arguments = arguments
        return child
    }

    /// A program of the system's; nil where there is none.
    static func named(_ name: String, _ arguments: [String]) -> Process? {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        guard let path = folders.map({ "\($0)/\(name)" }).first(where: FileManager.default.isExecutableFile) else {
            return nil
        }
        let child = Process()
        child.executableURL = URL(filePath: path)
        child.arguments = arguments
        return child
    }

    /// Runs a child to its end.
    ///
    /// - Returns: How long that took, in seconds, and what it printed.
    static func run(_ child: Process) throws -> (seconds: Double, output: String) {
        let output = Pipe()
        child.standardOutput = output
        var printed = Data()
        let seconds = try Measurement.time {
            try child.run()
            printed = try output.fileHandleForReading.readToEnd() ?? Data()
            child.waitUntilExit()
        }
        guard child.terminationReason == .exit, child.terminationStatus == 0 else {
            throw BenchFailure(
                "\(child.executableURL?.lastPathComponent ?? "a child") ended with \(child.terminationStatus)")
        }
        return (seconds, String(decoding: printed, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// Runs `body` with a server of objects, given its URL.
    static func withObjectServer<Result>(_ body: (String) async throws -> Result) async throws -> Result {
        let (server, input, line) = try beginOwn(["serve-objects"])
        defer {
            try? input.fileHandleForWriting.close()
            server.waitUntilExit()
        }
        return try await body(line)
    }

    /// Has a process write to a cache and suspend it, and kills it then.
    static func killSuspended(with path: String) throws {
        let (child, input, _) = try beginOwn(["suspend-cache", path])
        kill(child.processIdentifier, SIGKILL)
        child.waitUntilExit()
        // Closed, it would have ended the child.
        withExtendedLifetime(input) {}
    }

    /// Starts this program once more, and waits for the first line that it prints. It ends with its input: when this
    /// process does, in whatever way.
    private static func beginOwn(_ arguments: [String]) throws -> (child: Process, input: Pipe, line: String) {
        let child = try own(arguments)
        let (input, output) = (Pipe(), Pipe())
        (child.standardInput, child.standardOutput) = (input, output)
        try child.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let bytes = output.fileHandleForReading.availableData
            guard !bytes.isEmpty else { throw BenchFailure("\(arguments[0]) did not start") }
            line += bytes
        }
        return (child, input, String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
}
