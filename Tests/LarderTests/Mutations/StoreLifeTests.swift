import Foundation
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Notes what takes effect, at all backends together, and answers as chance has it.
private struct ChanceServer {
    let transport: ScriptedServer
    private let history: History

    /// What became of each mutation, by its tag.
    private final class History: Sendable {
        let log = Mutex<[String]>([])
    }

    var effects: [Int: Int] {
        Dictionary(grouping: transport.effects.compactMap { Int($0) }, by: \.self).mapValues(\.count)
    }
    var log: [String] { history.log.withLock { $0 } }

    init(_ numbers: SeededNumbers) {
        let history = History()
        let numbers = Mutex(numbers)
        self.history = history
        transport = ScriptedServer(search: nil) { server, _, request in
            guard request.kind == .mutation, let tag = request.values["stars"] as? Int else {
                return try ScriptedServer.found.get()
            }
            let chance = numbers.withLock { Int.random(in: 0..<30, using: &$0) }
            if chance < 10 || chance >= 16 && chance < 20 { server.note("\(tag)") }
            history.log.withLock { $0.append("\(tag): \(chance)") }
            switch chance {
            case 0..<8: return GraphQLAnswer(rated("\(tag)", tag))
            case 8, 16: throw TransportError(.interrupted, "lost")
            case 9, 17: throw TransportError(.status, "status 503", status: 503)
            case 18: throw TransportError(.unusableAnswer, "a page", status: 200)
            case 19: return GraphQLAnswer(#"{"data":null,"errors":[{"message":"no","path":["rate","id"]}]}"#)
            case 20: throw TransportError(.status, "status 404", status: 404)
            case 21: throw TransportError(.status, "status 429", status: 429)
            case 22: throw TransportError(.timedOut, "late")
            case 23: return GraphQLAnswer(#"{"errors":[{"message":"no"}]}"#)
            case 24: throw TransportError(.status, "status 500", status: 500)
            default: throw TransportError.away
            }
        }
    }
}

private struct Life {
    var numbers: SeededNumbers
    let folder: URL
    let server: ChanceServer
    var backups: [StoreBackup] = []
    var environment = 0
    var nextTag = 1
    var history: [String] = []

    var store: URL { folder.appending(path: "store") }
    var sqlite: URL { store.appending(path: "larder.sqlite") }

    static func environment(_ number: Int) throws -> BackendEnvironment {
        BackendEnvironment(
            name: "env\(number)", api: .init(url: try #require(URL(string: "https://env\(number).example/graphql"))))
    }

    mutating func chance(_ count: Int) -> Int { Int.random(in: 0..<count, using: &numbers) }

    mutating func with(_ body: (Store, Partition, inout Life) async throws -> Void) async throws {
        var options = Store.Options()
        options.silence()
        let store = try Store.open(at: store, schema: try Schema(parsing: fixtureSchema), options: options)
        defer { try? store.close() }
        let app = try store.partition(of: Self.environment(environment), leaving: .park, server: server.transport)
        try await body(store, app, &self)
    }

    mutating func step() async throws {
        let choice = chance(20)
        history.append("\(choice)")
        switch choice {
        case 0...4: try await with { _, app, life in try await life.queue(app) }
        case 5...8: try await with { store, app, life in try await life.run(store, app) }
        case 9, 10:
            guard FileManager.default.fileExists(atPath: sqlite.path) else { return }
            backups.append(try StoreBackup.make(of: store, into: folder.appending(path: "backups")))
        case 11, 12: try restore()
        case 13:
            // The database is lost, with its log or without.
            try? FileManager.default.removeItem(at: sqlite)
            if chance(2) == 0 { try? FileManager.default.removeItem(atPath: sqlite.path + "-wal") }
            try? FileManager.default.removeItem(atPath: sqlite.path + "-shm")
            history.append("lost")
            if !backups.isEmpty {
                try restore()
            } else {
                for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: sqlite.path + suffix) }
            }
        case 14:
            try await with { store, app, life in
                let kind: Larder.PendingWork = [.park, .carry, .discard][life.chance(3)]
                let other = 1 - life.environment
                life.history.append("to \(other) \(kind)")
                _ = try await store.switch(to: Life.environment(other), pending: kind, server: life.server.transport)
                life.environment = other
            }
        case 15:
            try await with { store, app, life in
                let others = try store.partitionIdentities().filter { $0.environment == "env\(1 - life.environment)" }
                for other in others { try await store.forget(other, losingUnsent: true) }
            }
        case 16:
            try await with { _, app, life in
                let queue = try app.core.operationsStore.database().mutations
                _ = try await queue.prune(keeping: 0, in: app.core.name)
            }
        case 17:
            try await with { _, app, life in
                do {
                    try await [true, false][life.chance(2)] ? app.erase(unsent: .discard) : app.clear(unsent: .keep)
                } catch let error as LarderError where error.code.rawValue == "operations.unsentWork" {}
            }
        case 18: try repair()
        default:
            try await with { _, app, life in
                // What was refused may be replayed; what may have had an effect is not.
                for letter in try app.mutations(in: [.deadLetter])
                where [.rejected, .expired, .dependencyDiscarded].contains(letter.failure?.kind) {
                    try? await app.replayMutation(letter.id)
                }
            }
        }
    }

    mutating func queue(_ app: Partition) async throws {
        var last: MutationID?
        for _ in 0..<(1 + chance(4)) {
            var queued = MutationOptions(lane: MutationLane("\(chance(3))"))
            if let last, chance(3) == 0 { queued.dependencies = [last] }
            last = try await app.enqueue(giveStars("\(nextTag)", nextTag), options: queued).id
            nextTag += 1
        }
    }

    mutating func run(_ store: Store, _ app: Partition) async throws {
        let left = Mutex(chance(4) == 0 ? chance(8) : Int.max)
        let isClosing = chance(2) == 0
        let runner = quickRunner(app) { options in
            options.maximumFaults = 2
            options.reached = { _ in
                let isNow = left.withLock { left in
                    left -= 1
                    return left == 0
                }
                if isNow, isClosing { try? store.close() }
            }
        }
        do { try await runner.drain() } catch let error as LarderError where error.code == .parked {}
    }

    mutating func restore() throws {
        guard !backups.isEmpty else { return }
        let backup = backups[chance(backups.count)]
        history.append("backup \(backup.folder.lastPathComponent)")
        let lock = try MigrationLock.take(in: store, for: "a test", within: .seconds(60))
        defer { lock.release() }
        let saves = chance(2) == 0
        do {
            let report = try StoreRestoration.bringBack(
                backup, to: store, backingUpInto: saves ? folder.appending(path: "backups") : nil, holding: lock)
            // A store that had lost its database has a backup without one.
            guard let made = report.backup else { return }
            if FileManager.default.fileExists(atPath: made.appending(path: "larder.sqlite").path) {
                backups.append(try StoreBackup(at: made))
            }
        } catch let error as LarderError where error.code.rawValue == "operations.foreignBackup" {
            history.append("foreign: \(error.message.prefix(40))")
        }
    }

    mutating func repair() throws {
        guard var bytes = try? Data(contentsOf: sqlite), bytes.count > 8_192 else { return }
        // Everything is in the file itself once the last program has closed it.
        let page = 1 + chance(bytes.count / 4_096 - 1)
        for index in page * 4_096..<(page + 1) * 4_096 { bytes[index] = 0xA5 }
        try bytes.write(to: sqlite)
        let lock = try MigrationLock.take(in: store, for: "a test", within: .seconds(60))
        defer { lock.release() }
        let plan = try StoreRepair(of: store)
        history.append("repair page \(page): \(plan.steps.count)")
        do { _ = try plan.carryOut(on: store, holding: lock) } catch {
            // Not even the tables are known.
            history.append("beyond repair")
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: sqlite.path + suffix) }
            lock.release()
            try restore()
        }
    }
}

@Suite("Whatever is done to a store, nothing takes effect twice", .timeLimit(.minutes(10)))
struct StoreLifeTests {
    @Test(
        "Queueing, sending, backing up, restoring, losing, repairing, switching and forgetting, in any order",
        arguments: 0..<4)
    func life(number: Int) async throws {
        let seeds = ProcessInfo.processInfo.environment["LARDER_LIFE_COUNT"].flatMap(Int.init) ?? 1
        for run in 0..<seeds {
            let seed = TestSeed.of("life", number * 1_000 + run)
            try await withTemporaryFolder { folder in
                let server = ChanceServer(SeededNumbers(seed: seed, "server"))
                var life = Life(numbers: SeededNumbers(seed: seed, "life"), folder: folder, server: server)
                for _ in 0..<60 {
                    do { try await life.step() } catch {
                        Issue.record("seed \(seed), \(life.history.suffix(12)): \(error)")
                        return
                    }
                    let twice = server.effects.filter { $0.value > 1 }
                    guard twice.isEmpty else {
                        Issue.record("seed \(seed), twice \(twice), \(life.history), \(server.log.suffix(40))")
                        return
                    }
                }
            }
        }
    }
}
