import Foundation
import LarderPowerLoss
import LarderTestSupport
import Testing

/// Runs a load in a child that is recorded.
enum PowerRecorder {
    static let requirement = "needs Linux, clang and the program larder-crash"

    static let isUsable = ChildProgram.isBuilt && library != nil

    private static let library = PreloadedLibrary.compiled(from: "Tests/PowerLoss/recorder.c")

    /// Records what a child does in `root`, into files beside it.
    ///
    /// - Parameters:
    ///   - load: What the child is to do, by its word for that.
    ///   - failing: The sync that fails, as the recorder's LARDER_FAILING_SYNC.
    ///   - fatal: The change after which the child is killed, as the recorder's LARDER_KILL_AFTER.
    static func record(
        _ root: URL, beside folder: URL, load: String, seed: UInt64, lives: Int, failing: String? = nil,
        fatal: String? = nil
    ) async throws -> Recording {
        let marks = folder.appending(path: "marks")
        return try await record(
            root, beside: folder, [load, marks.path, "\(seed)", "\(lives)"], failing: failing, fatal: fatal)
    }

    /// Records what a child with these arguments does in `root`.
    static func record(
        _ root: URL, beside folder: URL, _ arguments: [String], failing: String? = nil, fatal: String? = nil
    ) async throws -> Recording {
        var environment: [String: String] = [:]
        environment["LARDER_FAILING_SYNC"] = failing
        environment["LARDER_KILL_AFTER"] = fatal
        let (log, marks) = (folder.appending(path: "recording"), folder.appending(path: "marks"))
        let child = try ChildProgram.start(
            root.appending(path: "store"), arguments, input: nil, output: nil,
            environment: environment.merging([
                "LD_PRELOAD": try #require(library).path, "LARDER_RECORDED_FOLDER": root.path,
                "LARDER_RECORDING": log.path, "LARDER_MARKS": marks.path,
            ]) { $1 })
        await child.ended()
        try #require(child.terminationReason == .exit && child.terminationStatus == 0, "the load failed: \(arguments)")
        return try Recording(log)
    }

    /// Where much is written that nobody keeps: in memory where there is such a folder.
    static func withScratch<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
        let memory = URL(filePath: "/dev/shm")
        guard FileManager.default.isWritableFile(atPath: memory.path) else {
            return try await withTemporaryFolder(body)
        }
        let folder = memory.appending(path: "larder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        return try await body(folder)
    }

    /// Runs `body` with such a folder and an empty folder in it, into which a load that is recorded writes.
    static func withRoot<Result>(
        _ body: (_ root: URL, _ scratch: URL) async throws -> Result
    ) async throws -> Result {
        try await withScratch { scratch in
            let root = scratch.appending(path: "root")
            try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
            return try await body(root, scratch)
        }
    }
}
