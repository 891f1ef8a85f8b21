import Foundation
import Larder
import LarderHTTP
import RecipeServer

/// A process that fetches, then writes without end and says of each write that it is durable, until it is killed.
enum KilledWriter {
    /// On the command line of the child; the server's address follows.
    static let option = "--write-until-killed"
    static let id = "8"
    static let key = "Recipe:\(id)"
    /// It ends by itself where nobody kills it.
    private static let mostWrites = 100_000
    /// How many acknowledged writes the parent waits for.
    private static let enough = 100

    struct Killed {
        var lastAcknowledged: Int
    }

    private static func title(_ number: Int) -> String { "Draft \(number)" }

    static func number(of title: String) -> Int? {
        title.hasPrefix("Draft ") ? Int(title.dropFirst("Draft ".count)) : nil
    }

    /// What the child does.
    static func write(store folder: URL, server: URL) async throws {
        let store = try Store.open(at: folder, schemaText: [RecipeServer.schema])
        try await HTTPTransport.withTransport(to: server) { http in
            let app = try store.partition(transport: http)
            _ = try await app.fetch(Questions.latest)
            for number in 1...mostWrites {
                let json = Value.object(["id": .string(id), "title": .string(title(number))]).json
                try await app.write(key, Questions.title, json: json)
                try FileHandle.standardOutput.write(contentsOf: Data("\(number)\n".utf8))
            }
        }
    }

    /// Starts the child, lets it write for a while, and kills it.
    static func runAndKill(store: URL, server: URL, claims: Claims) async throws -> Killed {
        let child = Process()
        child.executableURL = try claims.require("the program knows where it is", ownExecutable)
        child.arguments = ["--store", store.path, option, server.absoluteString]
        let output = Pipe()
        child.standardOutput = output
        let said = SaidLines(output.fileHandleForReading)
        try child.run()
        // The child must not stay whatever happens here; it is dead after the first signal.
        defer { if child.isRunning { kill(child.processIdentifier, SIGKILL) } }

        _ = try await waiting(for: "the child writes") {
            guard child.isRunning else {
                throw Mismatch(claim: "the child writes", expected: "\(enough) writes", found: "that it has ended")
            }
            return said.lastNumber.flatMap { $0 >= enough ? $0 : nil }
        }
        kill(child.processIdentifier, SIGKILL)
        _ = try await waiting(for: "the child is dead") { child.isRunning ? nil : true }
        try claims.expect("the child died of a signal", child.terminationReason == .uncaughtSignal, else: "an exit")
        try claims.expect("the signal was SIGKILL", child.terminationStatus, is: SIGKILL)
        let last = try await waiting(for: "all that the child said") { said.isEnded ? said.lastNumber : nil }
        return Killed(lastAcknowledged: last)
    }

    private static var ownExecutable: URL? {
        #if os(Linux)
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        #else
        Bundle.main.executableURL
        #endif
    }
}
