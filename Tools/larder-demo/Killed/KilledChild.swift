import Foundation

/// This program once more, as another process with the same store, which gets SIGKILL in the middle of what it does.
enum KilledChild {
    /// What it does, as its command line says; the server's address follows.
    enum Role: String, Sendable {
        case writer = "--write-until-killed"
        case sender = "--send-until-killed"
        case carrier = "--transfer-until-killed"
    }

    /// Starts the child, and kills it as soon as it is time.
    ///
    /// - Parameter isTime: Asked again and again.
    /// - Returns: All that the child said.
    static func runAndKill(
        _ role: Role, store: URL, server: URL, claims: Claims, when isTime: (SaidLines) -> Bool
    ) async throws -> SaidLines {
        let child = Process()
        child.executableURL = try claims.require("the program knows where it is", ownExecutable)
        child.arguments = ["--store", store.path, role.rawValue, server.absoluteString]
        let output = Pipe()
        child.standardOutput = output
        let said = SaidLines(output.fileHandleForReading)
        try child.run()
        // The child must not stay whatever happens here; it is dead after the first signal.
        defer { if child.isRunning { kill(child.processIdentifier, SIGKILL) } }

        _ = try await waiting(for: "the child does its work") {
            if isTime(said) { return true }
            guard child.isRunning else {
                throw Mismatch(
                    claim: "the child works until it is killed", expected: "that it runs", found: "that it has ended")
            }
            return nil
        }
        kill(child.processIdentifier, SIGKILL)
        _ = try await waiting(for: "the child is dead") { child.isRunning ? nil : true }
        try claims.expect("the child died of a signal", child.terminationReason == .uncaughtSignal, else: "an exit")
        try claims.expect("the signal was SIGKILL", child.terminationStatus, is: SIGKILL)
        return try await waiting(for: "all that the child said") { said.isEnded ? said : nil }
    }

    private static var ownExecutable: URL? {
        #if os(Linux)
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        #else
        Bundle.main.executableURL
        #endif
    }
}
