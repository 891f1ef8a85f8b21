import Foundation
import LarderTestSupport
import Testing

/// The program `larder-crash`, which works on a store as another process, and is stopped, starved and killed.
enum ChildProgram {
    static let requirement = "the program larder-crash is not built"

    static let isBuilt = BuiltProgram.exists("larder-crash")

    private static let file = BuiltProgram.file("larder-crash")

    /// Starts the program with its output in a file, which takes any amount of it.
    static func start(_ store: URL, _ arguments: String..., input: Pipe? = nil, output: URL? = nil) throws -> Process {
        try start(store, arguments, input: input, output: output)
    }

    /// - Parameters:
    ///   - addressSpace: KiB of address space that the program may take.
    ///   - hasOwnNetwork: Whether it runs in a network namespace of its own.
    static func start(
        _ store: URL, _ arguments: [String], input: Pipe? = nil, output: URL? = nil,
        environment: [String: String] = [:], addressSpace: Int? = nil, hasOwnNetwork: Bool = false
    ) throws -> Process {
        let child = Process()
        child.executableURL = file
        child.arguments = [store.path] + arguments
        if let addressSpace {
            child.executableURL = URL(filePath: "/bin/sh")
            child.arguments =
                ["-c", "ulimit -v \(addressSpace) && exec \"$0\" \"$@\"", file.path, store.path] + arguments
        }
        if hasOwnNetwork {
            child.executableURL = URL(filePath: "/usr/bin/env")
            child.arguments = ["unshare", "-rn", file.path, store.path] + arguments
        }
        child.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if let input { child.standardInput = input }
        guard let output else {
            child.standardOutput = FileHandle.nullDevice
            try child.start()
            return child
        }
        try Data().write(to: output)
        try child.start(printing: output)
        return child
    }

    /// What the program says until it ends, which it must do by itself.
    static func run(
        _ store: URL, _ arguments: String..., hasOwnNetwork: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [String] {
        try await withTemporaryFolder { folder in
            let said = folder.appending(path: "said")
            let child = try start(store, arguments, input: nil, output: said, hasOwnNetwork: hasOwnNetwork)
            await child.ended()
            #expect(child.terminationReason == .exit, "it ended by a signal", sourceLocation: sourceLocation)
            #expect(child.terminationStatus == 0, sourceLocation: sourceLocation)
            return try lines(of: said)
        }
    }

    static func lines(of file: URL) throws -> [String] {
        // The last line may be cut short.
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().map(String.init)
    }
}
