import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderLMDB
@testable import LarderOperations
@testable import LarderRecords

/// A folder with room for a store and its backups, and the store's content in few words: a number in the cache, and
/// mutations.
struct MigrationFixture {
    let folder: URL
    var store: URL { folder.appending(path: "store") }
    var backups: URL { folder.appending(path: "store.backups") }

    static func with(_ body: (MigrationFixture) async throws -> Void) async throws {
        try await withTemporaryFolder { try await body(MigrationFixture(folder: $0)) }
    }

    private static let schema = "type Query { number(key: Int!): Int }"
    private static let number = GraphQLOperation("{ number(key: 1) }")

    func withPartition<Result>(_ body: (Store, Partition) async throws -> Result) async throws -> Result {
        let opened = try Store.open(at: store, schema: try Schema(parsing: Self.schema))
        do {
            let result = try await body(opened, try opened.partition())
            try opened.close()
            return result
        } catch {
            try? opened.close()
            throw error
        }
    }

    /// Stores a number in the cache, where a store is made if there is none.
    func write(_ number: Int) async throws {
        try await withPartition { _, app in
            try await app.write(Self.number, json: Array(#"{"number":\#(number)}"#.utf8))
        }
    }

    /// The number in the cache; nil where it does not know one.
    func number() async throws -> Int? {
        try await withPartition { _, app in
            try app.read(Self.number, allowsPartial: true)["number"]?.int.map { Int($0) }
        }
    }

    // MARK: Mutations

    func withDatabase<Result>(_ body: (OperationsDatabase) async throws -> Result) async throws -> Result {
        try await OperationsDatabase.using(store, body)
    }

    /// Queues as many mutations, each in a lane of its own.
    @discardableResult
    func queue(_ count: Int, named name: String = "note") async throws -> [UUID] {
        try await withDatabase { database in
            var ids: [UUID] = []
            for number in 0..<count {
                let draft = MutationDraft.note("mutation { \(name) }", lane: "\(number)")
                ids.append(try await database.mutations.enqueue(draft).id)
            }
            return ids
        }
    }

    /// Marks a mutation's row as being sent; sends nothing.
    func begin(_ id: UUID) async throws {
        try await withDatabase { _ = try await $0.mutations.begin(id, owner: "test", now: Date()) }
    }

    /// Notes a failed attempt in a mutation's row; sends nothing.
    func failOnce(_ id: UUID, as kind: MutationFailure.Class) async throws {
        try await withDatabase { database in
            let attempt = try await database.mutations.begin(id, owner: "test", now: Date()).attempt
            let failure = MutationFailure(kind, message: "it failed", time: Date())
            try await database.mutations.retryLater(attempt, at: nil, failure, now: Date())
        }
    }

    /// Marks a mutation's row as applied; sends nothing.
    func settle(_ id: UUID) async throws {
        try await withDatabase { database in
            let attempt = try await database.mutations.begin(id, owner: "test", now: Date()).attempt
            try await database.mutations.answer(attempt, Array("{}".utf8), now: Date())
            try await database.mutations.settle(id, now: Date())
        }
    }

    /// Queues a mutation whose idempotency key is the program's own, and always the same.
    func queueByOwnKey() async throws -> UUID {
        var draft = MutationDraft.note()
        draft.idempotencyKey = "the program's own"
        return try await withDatabase { [draft] in try await $0.mutations.enqueue(draft).id }
    }

    /// Queues a mutation and sets it aside, rejected by the server.
    func queueDeadLetter() async throws -> UUID {
        let id = try await queue(1)[0]
        try await withDatabase { database in
            let failure = MutationFailure(.rejected, message: "No.", time: Date())
            try await database.mutations.setAside(id, expecting: .pending, failure, now: Date())
        }
        return id
    }

    func mutations() async throws -> [UUID] {
        try await withDatabase { try $0.mutations.list().map(\.id) }
    }

    /// The mutations of a store that must be sound, after a restoration that must have gone well.
    func mutations(
        after restoration: MigrateProcess.Outcome, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [Mutation] {
        #expect(restoration.status == 0, "\(restoration.errors)", sourceLocation: sourceLocation)
        try await expectSound(sourceLocation: sourceLocation)
        return try await withDatabase { try $0.mutations.list() }
    }

    /// Expects that a mutation has taken effect, and that the store tells of it.
    func expectApplied(_ id: UUID, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await withDatabase { database in
            guard case .settled(let outcome) = try database.mutations.find(id) else {
                Issue.record("the outcome is gone", sourceLocation: sourceLocation)
                return
            }
            #expect(outcome.kind == .applied, sourceLocation: sourceLocation)
        }
    }

    // MARK: Other versions

    /// Makes a store whose database has only the first migrations, as an older version of the library would.
    func makeOlder(migrations count: Int = 2) throws {
        try FileManager.default.createDirectory(at: store, withIntermediateDirectories: true)
        let set = MigrationSet(migrations: Array(Migration.all.prefix(count)))
        try OperationsDatabase(folder: store, options: .init(), migrations: set).close()
    }

    /// Changes the database as another program would.
    func execute(_ sql: String) throws {
        let queue = try DatabaseQueue(path: store.appending(path: "larder.sqlite").path)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    func value(_ sql: String) throws -> String? {
        let queue = try DatabaseQueue(path: store.appending(path: "larder.sqlite").path)
        defer { try? queue.close() }
        return try queue.read { try String.fetchOne($0, sql: sql) }
    }

    /// Gives the current generation of a partition's cache another format's mark.
    func markCache(format: UInt32, of partition: String = Store.unnamedPartition) throws {
        let folder = CacheFolder(store: store, partition: partition, Store.Options())
        let environment = try Environment(
            folder: folder.path + "/\(try folder.format().generation)", tables: GenerationMark.tables)
        try environment.write(deadline: .now + .seconds(300)) { transaction in
            guard let meta = environment.table("meta") else { throw RecordError.damagedState }
            var bytes = try GenerationMark.stored(transaction, meta)
            withUnsafeBytes(of: format.littleEndian) { bytes.replaceSubrange(0..<4, with: $0) }
            let sum = bytes.withUnsafeBytes { checksum(UnsafeRawBufferPointer(rebasing: $0[..<56])) }
            withUnsafeBytes(of: sum.littleEndian) { bytes.replaceSubrange(56..<60, with: $0) }
            try GenerationState.key.withUnsafeBytes { key throws in
                try bytes.withUnsafeBytes { try transaction.put(key, $0, in: meta) }
            }
        }
        try environment.close()
    }

    /// Damages the current generation of a partition's cache.
    func damageCache(of partition: String = Store.unnamedPartition) throws {
        let generations = store.appending(path: "records/\(partition)")
        let numbers = try FileManager.default.contentsOfDirectory(atPath: generations.path).compactMap(Int.init)
        let number = try #require(numbers.max())
        try Data(repeating: 1, count: 50_000).write(to: generations.appending(path: "\(number)/data.mdb"))
    }

    // MARK: The tool

    func migrate(
        _ arguments: String..., environment: [String: String] = [:], in current: URL? = nil
    ) async throws -> MigrateProcess.Outcome {
        try await MigrateProcess.run(
            arguments + ["--store", store.path], environment: environment, in: current ?? folder)
    }

    /// Makes a backup in a place, by default beside the store. It must be the only one there.
    func makeBackup(in place: URL? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws -> URL {
        let arguments = ["backup", "--store", store.path] + (place.map { ["--to", $0.path] } ?? [])
        let outcome = try await MigrateProcess.run(arguments, in: folder)
        #expect(outcome.status == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
        return try backup(in: place)
    }

    /// The only backup in a place, by default beside the store.
    func backup(in place: URL? = nil) throws -> URL {
        let place = place ?? backups
        let names = try FileManager.default.contentsOfDirectory(atPath: place.path)
        try #require(names.count == 1, "\(names)")
        return place.appending(path: names[0])
    }

    /// What must hold after whatever happened.
    func expectSound(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let outcome = try await migrate("validate")
        #expect(
            outcome.status == 0, "\(comment.map { "\($0)" } ?? ""): \(outcome.errors)",
            sourceLocation: sourceLocation)
    }

    /// What lies in the store and was not finished.
    func leftovers() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
            $0.contains("draft-") || $0.contains("restored-") || $0.contains(".removed-")
        }
    }
}

/// The members of a JSON object's member `result`.
func result(_ outcome: MigrateProcess.Outcome) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
    return try #require(object?["result"] as? [String: Any], "\(outcome.output) \(outcome.errors)")
}

/// A part of a result as text that can be compared.
func text(_ value: Any?) throws -> String {
    guard let value else { return "" }
    let options: JSONSerialization.WritingOptions = [.sortedKeys, .fragmentsAllowed]
    return String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
}

extension MutationDraft {
    /// A mutation of a store without environments, with variables as a JSON object.
    static func note(
        _ document: String = "mutation { note }", _ variables: String = "{}", lane: String = ""
    ) -> MutationDraft {
        MutationDraft(
            partition: Store.unnamedPartition, lane: lane,
            content: MutationContent(document: document, variables: Array(variables.utf8)), created: Date())
    }
}
