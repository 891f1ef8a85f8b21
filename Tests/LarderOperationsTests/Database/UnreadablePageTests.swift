import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("A page that the disk does not give", .timeLimit(.minutes(5)))
struct UnreadablePageTests {
    enum Work: CaseIterable {
        case open, openWithCheck, check, checkFolder, list, copy, stage

        func run(in folder: URL, copyingTo target: URL) throws {
            var options = OperationsDatabase.Options()
            options.verifiesAlways = self == .openWithCheck
            switch self {
            case .checkFolder:
                // A finding would be one of the file.
                let problems = try OperationsDatabase.check(folder: folder)?.problems
                #expect(problems == [])
            case .stage:
                let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(5))
                defer { lock.release() }
                try OperationsDatabase.stage("token", in: folder, holding: lock) { path in
                    let file = folder.appending(path: OperationsDatabase.fileName)
                    try FileManager.default.copyItem(at: file, to: URL(filePath: path))
                }
            default:
                let database = try OperationsDatabase(folder: folder, options: options)
                defer { try? database.close() }
                switch self {
                case .check: #expect(try database.check().problems == [])
                case .list: #expect(try database.mutations.list().count == 40)
                case .copy: try database.copy(to: target)
                default: break
                }
            }
        }
    }

    @Test(
        "Whatever reads it says that the disk failed, and never that the file is damaged", arguments: Work.allCases,
        [ResultCode.SQLITE_IOERR_READ, .SQLITE_IOERR_CORRUPTFS])
    func everywhere(work: Work, code: ResultCode) async throws {
        try await withTemporaryFolder { folder in
            let ready = try OperationsDatabase(folder: folder.appending(path: "ready"))
            _ = try await ready.mutations.enqueue((0..<40).map { draft("\($0)") })
            try ready.close()
            for isLasting in [false, true] {
                var count = 0
                var hasFailed = true
                while hasFailed {
                    let disk = FailingDisk()
                    let place = folder.appending(path: "\(isLasting) \(count)")
                    try FileManager.default.copyItem(at: folder.appending(path: "ready"), to: place)
                    disk.arm(.init(call: .read, code: code.rawValue, isLasting: isLasting), after: count)
                    let target = folder.appending(path: "copy \(isLasting) \(count)")
                    try await disk.failing(below: place) {
                        defer { disk.heal() }
                        do { try work.run(in: place, copyingTo: target) } catch let error as OperationsError {
                            #expect(error.code == .storage, "read \(count), \(isLasting): \(error)")
                            let isLeft = FileManager.default.fileExists(atPath: target.path)
                            #expect(!isLeft, "read \(count), \(isLasting): of the copy something is left")
                        }
                    }
                    hasFailed = disk.hasFailed
                    count += 1
                }
                #expect(count > 2)
            }
        }
    }
}
