import ArgumentParser
import Foundation
import Larder
import ObjectServer

/// Carries out what is queued in a store, in a process of its own, whose memory can be told.
struct CarryTransfers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "carry-transfers", abstract: "Carries out a store's transfers, and prints the most memory it had.",
        shouldDisplay: false)

    @ArgumentParser.Argument var store: String
    @ArgumentParser.Argument var url: String

    func run() async throws {
        guard let url = URL(string: url) else { throw ValidationError("\(url) is no URL.") }
        let opened = try Store.open(at: URL(filePath: store), schema: try Schema(parsing: ItemShop.schemaText))
        let app = try opened.partition()
        try await ObjectServer.withTransport(to: url) { storage in
            try await TransferRunner(app, storage: storage).drain()
        }
        try opened.close()
        try FileHandle.standardOutput.write(contentsOf: Data("\(Memory.peak.map(String.init) ?? "-")\n".utf8))
    }
}

/// This process's memory.
enum Memory {
    /// Bytes that it had at most in memory; nil where the system does not say.
    static var peak: Int? { status(/VmHWM:\s+([0-9]+) kB/) }
    /// Bytes that it has in memory now.
    static var current: Int? { status(/VmRSS:\s+([0-9]+) kB/) }

    /// Of these, bytes that no file has: what is mapped of a store does not count.
    static var own: Int? { own(of: getpid()) }

    /// The same of another process.
    static func own(of process: Int32) -> Int? { status(/RssAnon:\s+([0-9]+) kB/, of: process) }
    /// Bytes of address space that it takes.
    static var reserved: Int? { status(/VmSize:\s+([0-9]+) kB/) }

    /// From now on the peak is what comes.
    static func forgetPeak() { try? Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs")) }

    private static func status(_ line: Regex<(Substring, Substring)>, of process: Int32 = getpid()) -> Int? {
        #if os(Linux)
        // What `getrusage` says may be that of the process it was forked from.
        guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
            let match = status.firstMatch(of: line)
        else { return nil }
        return Int(match.1).map { $0 << 10 }
        #else
        // Not compiled here.
        return nil
        #endif
    }
}
