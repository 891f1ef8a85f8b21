import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderLMDB

@Suite("The size of the map", .timeLimit(.minutes(5)))
struct MapTests {
    private static var small: Environment.Options {
        var options = Environment.Options.fast
        options.startingMapSize = 1 << 20
        options.mapSize = 64 << 20
        return options
    }

    private final class Writing: Sendable { let isOver = Atomic(false) }

    private func value(_ id: UInt64) -> [UInt8] { [UInt8](repeating: UInt8(truncatingIfNeeded: id), count: 50_000) }

    @Test("A map that is full grows between transactions, as often as a write needs it")
    func grows() async throws {
        try await withEnvironment(Self.small) { environment in
            #expect(try environment.statistics().mapSize == 1 << 20)
            let records = try environment.records
            try environment.write { transaction in
                for id in 0..<200 as Range<UInt64> { try transaction.put(id, value(id).rawSpan, in: records) }
            }
            for id in 0..<200 as Range<UInt64> { #expect(try stored(id, in: environment) == value(id)) }
            let size = try environment.statistics().mapSize
            #expect(size >= 10_000_000 && size <= 64 << 20)
        }
    }

    @Test("A map begins no larger than it may become")
    func beginsNoLarger() async throws {
        var options = Self.small
        options.mapSize = 1 << 20
        options.startingMapSize = 64 << 20
        try await withEnvironment(options) { environment in
            let size = try environment.statistics().mapSize
            #expect(size == 1 << 20)
        }
    }

    @Test("A map grows to its greatest size and no further, and is full then", arguments: [1 << 20, 3 << 20])
    func greatest(from starting: Int) async throws {
        var options = Self.small
        options.startingMapSize = starting
        options.mapSize = 4 << 20
        try await withEnvironment(options) { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, value(1).rawSpan, in: records) }
            let error = try failure {
                try environment.write { transaction in
                    for id in 2..<200 as Range<UInt64> { try transaction.put(id, value(id).rawSpan, in: records) }
                }
            }
            #expect(error?.code == .mapFull)
            #expect(error?.isWorthRepeating == false)
            #expect(try environment.statistics().mapSize == 4 << 20)
            #expect(try stored(1, in: environment) == value(1))
        }
    }

    private func stored(_ id: UInt64, in environment: Environment) throws -> [UInt8]? {
        let transaction = try environment.beginRead()
        return try transaction.get(id, in: environment.records).copied
    }

    private func fill(_ environment: Environment, until deadline: SuspendingClock.Instant) throws {
        let records = try environment.records
        try environment.write(deadline: deadline) { transaction in
            for id in 2..<60 as Range<UInt64> { try transaction.put(id, value(id).rawSpan, in: records) }
        }
    }

    /// What a snapshot shows after a write that needed room, and found none while the snapshot lasted.
    private func shownWhileFull(_ environment: Environment) throws -> [UInt8]? {
        let reading = try environment.beginRead()
        expectFailure(.mapFull) { try fill(environment, until: .now + .milliseconds(20)) }
        return try reading.get(1, in: environment.records).copied
    }

    @Test("A map waits to grow until no snapshot looks at it, which then still shows what it showed")
    func waits() async throws {
        try await withEnvironment(Self.small) { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, value(1).rawSpan, in: records) }
            #expect(try shownWhileFull(environment) == value(1))
            try fill(environment, until: .now + .seconds(60))
            #expect(try stored(59, in: environment) == value(59))
        }
    }

    private func open(_ folder: URL, mapSize: Int) throws -> Environment {
        var options = Environment.Options.fast
        options.mapSize = mapSize
        return try Environment(folder: folder.path, tables: sampleTables, options: options)
    }

    @Test("A file opens with a map that it fills to the last page, and asks for a larger one than a page less")
    func filled() async throws {
        try await withTemporaryFolder { folder in
            let first = try open(folder, mapSize: 64 << 20)
            try first.write { try $0.put(1, value(1).rawSpan, in: try first.records) }
            try first.close()
            let summary = try requireSound(folder)
            let full = try open(folder, mapSize: Int(summary.lastPage + 1) * summary.pageSize)
            #expect(try stored(1, in: full) == value(1))
            try full.close()
            let error = #expect(throws: LMDBError.self) {
                try open(folder, mapSize: Int(summary.lastPage) * summary.pageSize)
            }
            #expect(error?.code == .mapFull)
        }
    }

    private func expectWholeCommit(_ environment: Environment) throws {
        let transaction = try environment.beginRead()
        let last = UInt64(try transaction.entryCount(of: environment.records)) - 1
        let found = try transaction.get(last, in: environment.records).copied
        #expect(found == value(last))
    }

    @Test("Reads go on, and see whole commits, while the map grows under them")
    func readsGoOn() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: Self.small)
            let records = try environment.records
            try environment.write { try $0.put(0, value(0).rawSpan, in: records) }
            let writing = Writing()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        while !writing.isOver.load(ordering: .acquiring) {
                            try expectWholeCommit(environment)
                            await Task.yield()
                        }
                    }
                }
                group.addTask {
                    defer { writing.isOver.store(true, ordering: .releasing) }
                    for id in 1..<300 as Range<UInt64> {
                        try environment.write { try $0.put(id, value(id).rawSpan, in: records) }
                        await Task.yield()
                    }
                }
                try await group.waitForAll()
            }
            #expect(try environment.statistics().mapSize > 1 << 20)
            try environment.close()
            try requireSound(folder)
        }
    }
}
