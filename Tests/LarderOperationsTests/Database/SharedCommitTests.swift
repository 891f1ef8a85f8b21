import Foundation
import GRDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderOperations

@Suite("Commits that are shared", .timeLimit(.minutes(10)))
struct SharedCommitTests {
    @Test(
        "Writers on threads of their own and others share commits, and each is told of its own write",
        arguments: [
            1, 2, 3,
        ])
    func mixed(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let kinds = (0..<300).map { _ in Int.random(in: 0..<4, using: &random) }
        try await withOperations { database in
            let taken = try await database.enqueue(draft(key: "taken"))
            let accepted = await withTaskGroup(of: UUID?.self) { group in
                for kind in kinds {
                    let queue = kind < 2 ? database.mutations : database.mutations.blocking
                    group.addTask { try? await queue.enqueue(draft(key: kind % 2 == 0 ? nil : "taken")).id }
                }
                return await group.reduce(into: Set<UUID>()) { if let id = $1 { $0.insert(id) } }
            }
            #expect(accepted.count == kinds.filter { $0 % 2 == 0 }.count, "seed \(seed)")
            #expect(try Set(database.mutations.list().map(\.id)) == accepted.union([taken]), "seed \(seed)")
            #expect(database.commitCount <= accepted.count + 1)
        }
    }

    @Test("A thread that writes while the database is closed has written, or gets an error that says closed")
    func closing() async throws {
        for _ in 0..<30 {
            try await withTemporaryFolder { folder in
                let database = try OperationsDatabase(folder: folder)
                let codes = await withTaskGroup(of: OperationsError.Code?.self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            do throws(OperationsError) {
                                _ = try await database.mutations.blocking.enqueue(draft())
                                return nil
                            } catch { return error.code }
                        }
                    }
                    group.addTask {
                        do throws(OperationsError) {
                            try database.close()
                            return nil
                        } catch { return error.code }
                    }
                    return await group.reduce(into: [OperationsError.Code]()) { if let code = $1 { $0.append(code) } }
                }
                #expect(codes.allSatisfy { $0 == .closed }, "\(codes)")
            }
        }
    }

    @Test("Tasks that each write one after the other share commits", arguments: [false, true])
    func closedLoop(isBlocking: Bool) async throws {
        try await withOperations { database in
            let queue = isBlocking ? database.mutations.blocking : database.mutations
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<8 {
                    group.addTask { for _ in 0..<50 { _ = try await queue.enqueue(draft("\(task)")) } }
                }
                try await group.waitForAll()
            }
            #expect(try database.mutations.list().count == 400)
            // Those who block keep the threads that others would come on: where there is one, nobody else comes.
            #expect(database.commitCount <= 400)
            if !isBlocking { #expect(database.commitCount < 400) }
        }
    }

    /// Has two writes share a commit; false where none ever did.
    private func shareCommit(_ database: OperationsDatabase) async throws -> Bool {
        final class Begun: Sendable {
            let isSet = Atomic(false)
        }
        // It may come too late, and not each time.
        for index in 0..<200 {
            let (before, begun) = (database.commitCount, Begun())
            let first = Task {
                try await database.write { db in
                    begun.isSet.store(true, ordering: .sequentiallyConsistent)
                    _ = try db.partition(making: "\(index)")
                    usleep(10_000)
                }
            }
            while !begun.isSet.load(ordering: .sequentiallyConsistent) { await Task.yield() }
            _ = try await database.enqueue(draft())
            try await first.value
            if database.commitCount == before + 1 { return true }
        }
        return false
    }

    @Test("A write that comes while another is carried out shares its commit")
    func joining() async throws {
        try await withOperations { (database) throws in
            #expect(try await shareCommit(database), "No write shared the commit of one that was under way")
        }
    }

    @Test("A write that comes alone after a shared commit is committed, though no other comes")
    func alone() async throws {
        try await withOperations { (database) throws in
            try #require(try await shareCommit(database))
            let before = database.commitCount
            let alone = Task { try await database.enqueue(draft()) }
            let deadline = SuspendingClock.now + .seconds(20)
            while database.commitCount == before, .now < deadline { try await Task.sleep(for: .milliseconds(2)) }
            #expect(database.commitCount == before + 1)
            // One that waits all the same goes with this.
            _ = try await database.enqueue(draft())
            _ = try await alone.value
        }
    }

    @Test("Of writers that come at once none is left waiting", .timeLimit(.minutes(2)), arguments: [false, true])
    func noneIsLeft(isBlocking: Bool) async throws {
        try await withOperations { database in
            let queue = isBlocking ? database.mutations.blocking : database.mutations
            for _ in 0..<150 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 0..<3 { group.addTask { _ = try await queue.enqueue(draft("\(task)")) } }
                    try await group.waitForAll()
                }
            }
            #expect(try database.mutations.list().count == 450)
        }
    }

    @Test("Others come to the connection while writers never leave it")
    func others() async throws {
        try await withOperations { database in
            let writers = (0..<4).map { task in
                Task { while !Task.isCancelled { _ = try await database.mutations.enqueue(draft("\(task)")) } }
            }
            for index in 0..<50 {
                _ = try database.hasChanged()
                try database.writeNow { _ = try $0.partition(making: "\(index)") }
                await Task.yield()
            }
            for writer in writers { writer.cancel() }
            for writer in writers { try await writer.value }
            #expect(try await database.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM partition") } == 51)
        }
    }

    @Test(
        "A write that was acknowledged is found, also where another thread closes the database meanwhile",
        arguments: [false, true])
    func closing(isBlocking: Bool) async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            let queue = isBlocking ? database.mutations.blocking : database.mutations
            let accepted = await withTaskGroup(of: Result<UUID?, any Error>.self) { group in
                for index in 0..<200 {
                    group.addTask {
                        if index == 100 { try? database.close() }
                        do { return .success(try await queue.enqueue(draft()).id) } catch { return .failure(error) }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for case .failure(let error) in accepted { #expect((error as? OperationsError)?.code == .closed) }
            let again = try OperationsDatabase(folder: folder)
            let found = try Set(again.mutations.list().map(\.id))
            #expect(Set(accepted.compactMap { try? $0.get() }) == found)
            try expectSound(again)
            try again.close()
        }
    }

    @Test("A write that fails takes nothing with it, of whichever thread it is", arguments: [false, true])
    func failing(isBlocking: Bool) async throws {
        try await withOperations { database in
            let queue = isBlocking ? database.mutations.blocking : database.mutations
            let first = draft()
            _ = try await queue.enqueue(first)
            await expectFailure(.duplicate) { _ = try await queue.enqueue(first) }
            await expectFailure(.notFound) { try await queue.settle(UUID(), now: noon) }
            #expect(try database.mutations.list().map(\.id) == [first.id])
        }
    }
}
