import Foundation
import LarderFiles
import LarderOperations
import LarderRecords
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A fault that a call of the file system can have.
private struct Fault: Sendable, CustomTestStringConvertible {
    let name: String
    let isLasting: Bool
    let make: @Sendable (FileCall) -> FileFault?

    var testDescription: String { name }

    static let all = [
        Fault(name: "an input/output error, once", isLasting: false) { _ in .failure(EIO) },
        Fault(name: "an input/output error, from then on", isLasting: true) { _ in .failure(EIO) },
        Fault(name: "a full disk, from then on", isLasting: true) { call in
            [.write, .open, .makeFolder, .link, .rename, .truncate].contains(call.kind) ? .failure(ENOSPC) : nil
        },
        Fault(name: "rights that are taken away, from then on", isLasting: true) { call in
            [.open, .makeFolder, .link, .rename, .remove, .setMode].contains(call.kind) ? .failure(EACCES) : nil
        },
        Fault(name: "a short read or write, once", isLasting: false) { call in
            [.read, .write].contains(call.kind) ? .shortened(to: 1) : nil
        },
        Fault(name: "a sync that lies, from then on", isLasting: true) { call in
            [.synchronize, .synchronizeFolder].contains(call.kind) ? .pretence : nil
        },
    ]
}

/// A piece of work on a store. It answers what was acknowledged of it, and may throw when a fault was injected.
private struct Work: Sendable, CustomTestStringConvertible {
    let name: String
    /// Whether it begins with a store that has a recipe and a mutation.
    var isPrepared = true
    let run: @Sendable (FaultyStore) async throws -> Void

    var testDescription: String { name }

    static let all = [
        Work(name: "make a store", isPrepared: false) { store in
            try await store.use { app in
                try await store.fetch(1, app)
                try await store.enqueue(app)
            }
        },
        Work(name: "open and close it") { store in try await store.use { _ in } },
        Work(name: "commit") { store in
            try await store.use { app in
                try await store.fetch(2, app)
                try await store.enqueue(app)
                try await store.fetch(3, app)
            }
        },
        Work(name: "compact") { store in
            try await store.use { app in
                _ = try await app.records.compact()
                try await store.fetch(2, app)
            }
        },
        Work(name: "replace the generation by an empty one") { store in
            try await store.use { app in
                store.forgetRecipes()
                _ = try await app.records.clear()
                try await store.fetch(2, app)
            }
        },
        Work(name: "back up") { store in
            let backup = try StoreBackup.make(of: store.folder, into: store.backups, options: store.options)
            try backup.verify()
            store.acknowledge(backup)
        },
        Work(name: "restore") { store in
            // The copy is made without faults.
            let backup = try StoreBackup.make(of: store.folder, into: store.backups)
            let lock = try MigrationLock.take(in: store.folder, for: "a test", within: .seconds(5))
            defer { lock.release() }
            _ = try StoreRestoration.bringBack(
                backup, to: store.folder, backingUpInto: nil, holding: lock, nothingSentSince: true,
                options: store.options)
        },
        Work(name: "repair") { store in
            let lock = try MigrationLock.take(in: store.folder, for: "a test", within: .seconds(5))
            defer { lock.release() }
            do {
                _ = try OperationsDatabase.repair(folder: store.folder, holding: lock, files: store.options.files)
            } catch let error as OperationsError { throw LarderError(error) }
        },
        Work(name: "read the status") { store in
            let status = try StoreStatus(of: store.folder, options: store.options)
            try #require(status.schema != nil && status.caches.count == 1)
        },
        Work(name: "download") { store in
            try await store.use { app in
                let file = store.folder.deletingLastPathComponent().appending(path: "copy")
                let download = try await app.transfers.download(TransferFixture.location, to: file)
                let storage = MemoryStorage()
                storage.keep(FaultyStore.object, at: TransferFixture.location)
                var options = TransferRunner.Options()
                options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
                options.maximumFaults = 2
                try await TransferRunner(app, storage: storage, options: options).drain()
                if try download.status().state == .done { store.acknowledge(file) }
            }
        },
    ]
}

/// A store whose calls of the file system go wrong.
private final class FaultyStore: Sendable {
    private struct Acknowledged {
        var recipes: Set<Int> = []
        var mutations: Set<MutationID> = []
        var backups: [StoreBackup] = []
        var files: [URL] = []
    }

    static let object = [UInt8](repeating: 7, count: 3_000)

    let folder: URL
    let backups: URL
    let options: Store.Options
    private let acknowledged: Mutex<Acknowledged>

    init(_ folder: URL, _ faults: InjectedFaults) {
        self.folder = folder
        backups = folder.deletingLastPathComponent().appending(path: "backups")
        var options = Store.Options()
        options.files = faults.files
        options.lockTimeout = .seconds(10)
        options.silence()
        self.options = options
        acknowledged = Mutex(Acknowledged())
    }

    /// Opens the store, and closes it whatever becomes of the work.
    func use(_ body: (Partition) async throws -> Void) async throws {
        let store = try Store.open(at: folder, schema: Self.schema, options: options)
        do {
            try await body(try store.partition(server: Self.transport))
        } catch {
            try? store.close()
            throw error
        }
        try store.close()
    }

    func fetch(_ id: Int, _ app: Partition) async throws {
        _ = try await app.fetch(recipe(id), policy: .networkOnly)
        acknowledged.withLock { _ = $0.recipes.insert(id) }
    }

    func enqueue(_ app: Partition) async throws {
        let receipt = try await app.enqueue(giveStars("1", 5), options: MutationOptions())
        acknowledged.withLock { _ = $0.mutations.insert(receipt.id) }
    }

    func acknowledge(_ backup: StoreBackup) { acknowledged.withLock { $0.backups.append(backup) } }
    func acknowledge(_ file: URL) { acknowledged.withLock { $0.files.append(file) } }
    func forgetRecipes() { acknowledged.withLock { $0.recipes = [] } }

    /// Takes what another has acknowledged of the same store.
    func take(over other: FaultyStore) {
        let before = other.acknowledged.withLock { $0 }
        acknowledged.withLock { $0 = before }
    }

    /// Looks without faults: both stores are sound, and what was acknowledged is there.
    func expectWhole(_ place: String) throws {
        let expected = acknowledged.withLock { $0 }
        var options = Store.Options()
        options.silence()
        let store = try Store.open(at: folder, schema: Self.schema, options: options)
        let app = try store.partition()
        #expect(try app.records.check().problems == [], "\(place)")
        for id in expected.recipes {
            #expect(try app.read(recipe(id))["recipe"]?["title"]?.string == "Soup \(id)", "\(place)")
        }
        let found = Set(try app.mutations().map(\.id))
        #expect(found.isSuperset(of: expected.mutations), "\(place)")
        try store.close()
        if FileManager.default.fileExists(atPath: folder.appending(path: OperationsDatabase.fileName).path) {
            let database = try OperationsDatabase(folder: folder)
            let problems = try database.check().problems
            #expect(problems == [], "\(place)")
            try database.close()
        }
        for backup in expected.backups {
            #expect(throws: Never.self, "\(place)") { try backup.verify() }
        }
        for file in expected.files { #expect(try Array(Data(contentsOf: file)) == Self.object, "\(place)") }
    }

    // Parsed once: many stores are opened.
    private static let schema: Schema = {
        do { return try Schema(parsing: fixtureSchema) } catch { fatalError("\(error)") }
    }()

    private static let transport = ScriptedServer { request in
        guard case .object(let variables)? = try? Value(json: request.variables), case .int(let id)? = variables["id"]
        else { return "{}" }
        let object = #"{"__typename":"Recipe","id":"\#(id)","title":"Soup \#(id)","author":null}"#
        return #"{"data":{"recipe":\#(object)}}"#
    }
}

@Suite("Faults at every call of the file system", .timeLimit(.minutes(10)))
struct FaultWalkTests {
    /// How many calls of a work fail in a run, each in a run of its own; all of them by the environment.
    private static let most = ProcessInfo.processInfo.environment["LARDER_ALL_FAULTS"] == nil ? 6 : .max

    @Test(
        "Work with a fault ends in a typed error or goes on, and loses nothing that was acknowledged",
        arguments: Work.all, Fault.all)
    private func walk(_ work: Work, _ fault: Fault) async throws {
        try await withTemporaryFolder { folder in
            let prepared = folder.appending(path: "prepared")
            let before = FaultyStore(prepared, InjectedFaults(at: .max) { _ in nil })
            if work.isPrepared {
                try await before.use { app in
                    try await before.fetch(1, app)
                    try await before.enqueue(app)
                }
            }
            // How many calls there are without a fault, and of which kinds.
            let calls = try await run(work, from: before, fault, at: .max, in: folder.appending(path: "none"))
            let points = calls.indices.filter { fault.make(calls[$0]) != nil }
            try #require(!points.isEmpty || ["open and close it", "read the status"].contains(work.name))
            let stride = max(1, points.count / Self.most)
            let offset = Int(TestSeed.of(work.name) % UInt64(stride))
            for point in points.dropFirst(offset).enumerated() where point.offset.isMultiple(of: stride) {
                _ = try await run(work, from: before, fault, at: point.element, in: folder.appending(path: "run"))
            }
        }
    }

    private func run(
        _ work: Work, from before: FaultyStore, _ fault: Fault, at point: Int, in folder: URL
    ) async throws -> [FileCall] {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let own = folder.appending(path: "store")
        if work.isPrepared { try FileManager.default.copyItem(at: before.folder, to: own) }
        let faults = InjectedFaults(at: point, isLasting: fault.isLasting, fault.make)
        let store = FaultyStore(own, faults)
        store.take(over: before)
        do { try await work.run(store) } catch {
            let calls = faults.calls
            let call = calls.indices.contains(point) ? "\(calls[point])" : "none"
            #expect(
                error is LarderError || error is RecordError,
                "\(work.name), \(fault.name) at \(point), \(call): \(error)")
            #expect(faults.wasInjected, "\(work.name) fails without a fault: \(error)")
        }
        let calls = faults.calls
        let call = calls.indices.contains(point) ? "\(calls[point])" : "none"
        let place = "\(work.name), \(fault.name) at \(point), \(call)"
        do { try store.expectWhole(place) } catch { Issue.record("\(place): \(error)") }
        return calls
    }
}
