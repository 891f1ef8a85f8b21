import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

/// The program that works on a store as another process, and is killed.
private let crashProgram = BuiltProgram.file("larder-crash")

/// The program while it runs, with what it says in a file.
private final class Child {
    let process = Process()
    /// It ends when this does: should the tests die, it does not go on.
    private let input = Pipe.uninherited()

    init(_ folder: URL, _ arguments: String..., output: URL) throws {
        process.executableURL = crashProgram
        process.arguments = [folder.path] + arguments
        process.standardInput = input
        try Data().write(to: output)
        try process.start(printing: output)
    }

    /// Kills it if it is still there, and waits for it. Doing so twice does nothing.
    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    /// Waits until it has ended by itself, for so many seconds.
    func wait(seconds: Double) async throws {
        let deadline = SuspendingClock.now + .seconds(seconds)
        while process.isRunning, .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
        try #require(!process.isRunning, "it has not ended within \(seconds) seconds")
    }
}

private func said(_ file: URL) throws -> Set<UUID> {
    // The last line may be cut short.
    try Set(
        String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().compactMap { UUID(uuidString: String($0)) })
}

@Suite(
    "Other processes", .enabled(if: BuiltProgram.exists("larder-crash"), "the program larder-crash is not built"),
    .timeLimit(.minutes(10)))
struct KillTests {
    @Test("After kill -9 at any moment everything that was accepted is there and the check finds nothing")
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let (place, output) = (folder.appending(path: "store"), folder.appending(path: "said"))
            var accepted: Set<UUID> = []
            for round in 0..<20 {
                let child = try Child(place, "enqueue", output: output)
                defer { child.end() }
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...150)))
                child.end()
                try #require(child.process.terminationReason == .uncaughtSignal, "round \(round): it ended by itself")
                accepted.formUnion(try said(output))
                let database = try OperationsDatabase(folder: place)
                let there = try database.mutations.list()
                #expect(accepted.subtracting(there.map(\.id)).isEmpty, "round \(round)")
                #expect(Set(there.map(\.sequence)).count == there.count)
                try expectSound(database, "round \(round)")
                try database.close()
            }
            #expect(!accepted.isEmpty)
        }
    }

    @Test("Several processes work side by side on one file, each on its lane, and nothing is lost")
    func together() async throws {
        try await withTemporaryFolder { folder in
            let outputs = (0..<3).map { folder.appending(path: "said-\($0)") }
            var children: [Child] = []
            defer { for child in children { child.end() } }
            for output in outputs { children.append(try Child(folder, "drain", "60", output: output)) }
            for child in children {
                try await child.wait(seconds: 60)
                #expect(child.process.terminationStatus == 0)
            }
            let database = try OperationsDatabase(folder: folder)
            let done = try outputs.flatMap { try said($0) }
            #expect(done.count == 180)
            for id in done { #expect(try database.outcome(id)?.kind == .applied) }
            #expect(try database.mutations.list().isEmpty)
            try expectSound(database)
            try database.close()
        }
    }
}
