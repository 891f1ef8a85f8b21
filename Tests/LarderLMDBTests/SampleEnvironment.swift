import Foundation
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderLMDB

/// LMDB's pages are as large as the system's.
let pageSize = min(Int(sysconf(Int32(_SC_PAGESIZE))), 32_768)

/// The two tables that most of these tests use.
let sampleTables: [TableDefinition] = [.init(name: "records", keys: .integers), .init(name: "keys", keys: .bytes)]

extension Environment {
    var records: Table { get throws { try #require(table("records")) } }
    var keys: Table { get throws { try #require(table("keys")) } }

    /// Writes with a deadline that no test reaches.
    func write<Result>(_ body: (inout WriteTransaction) throws -> Result) throws -> Result {
        try write(deadline: .now + .seconds(20), body)
    }
}

extension Environment.Options {
    /// For tests that need no durability: the same commits without waiting for the disk.
    static var fast: Self {
        var options = Self()
        options.durability = .none
        return options
    }
}

extension RawSpan? {
    /// A copy of the bytes, for comparing.
    var copied: [UInt8]? { self?.withUnsafeBytes { Array($0) } }
}

extension RawSpan {
    var copied: [UInt8] { withUnsafeBytes { Array($0) } }
}

/// The file calls that environments have made since they were forgotten last.
final class NotedCalls: Sendable {
    private let calls = Mutex<[FileCall]>([])

    var all: [FileCall] { calls.withLock { $0 } }
    /// How many bytes each write to the data file had.
    var dataWrites: [Int] { all.filter { $0.kind == .write && $0.path.hasSuffix("/data.mdb") }.map(\.count) }
    /// The system's files, of which each call is noted.
    var files: FileSystem {
        FileSystem { call in
            self.calls.withLock { $0.append(call) }
            return nil
        }
    }

    func forget() { calls.withLock { $0 = [] } }
}

/// Runs `body` with an environment in a new folder, closes it, and walks the file that it leaves.
func withEnvironment(
    _ options: Environment.Options = .fast,
    tables: [TableDefinition] = sampleTables,
    _ body: (Environment) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let environment = try Environment(folder: folder.path, tables: tables, options: options)
        try await body(environment)
        try environment.close()
        try requireSound(folder)
    }
}

/// Walks the data file in a folder.
@discardableResult
func requireSound(_ folder: URL) throws -> PageWalk.Summary {
    try PageWalk.run(path: folder.appending(path: "data.mdb").path)
}

/// The error that `body` throws; nil where it throws none.
func failure(of body: () throws -> Void) throws -> LMDBError? {
    do {
        try body()
        return nil
    } catch let error as LMDBError {
        return error
    }
}

/// Requires that `body` throws this kind of error.
func expectFailure(
    _ code: LMDBError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
    do {
        try body()
        Issue.record("nothing was thrown where \(code) belongs", sourceLocation: sourceLocation)
    } catch {
        #expect((error as? LMDBError)?.code == code, "\(error)", sourceLocation: sourceLocation)
    }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
