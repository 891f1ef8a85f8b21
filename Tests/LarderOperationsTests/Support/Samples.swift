import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

let app = "app"
/// A moment, and others counted in seconds from it.
let noon = Date(timeIntervalSince1970: 1_800_000_000)
func after(_ seconds: Double) -> Date { noon.addingTimeInterval(seconds) }
func json(_ text: String) -> [UInt8] { Array(text.utf8) }

let rename = MutationContent(
    document: "mutation Rename($id: ID!, $name: String!) { rename(id: $id, name: $name) { id name } }",
    operationName: "Rename", variables: json(#"{"id":"7","name":"soup"}"#),
    optimisticResponse: json(#"{"rename":{"__typename":"Dish","id":"7","name":"soup"}}"#))

func draft(
    _ lane: String = "", in partition: String = app, variables: String? = nil, optimistic: String? = nil,
    edits: String? = nil, key: String? = nil, dependencies: [UUID] = [], temporaryIDs: [TemporaryID] = [],
    expires: Date? = nil
) -> MutationDraft {
    var content = rename
    if let variables { content.variables = json(variables) }
    if let optimistic { content.optimisticResponse = json(optimistic) }
    content.listEdits = edits.map(json)
    return MutationDraft(
        partition: partition, lane: lane, idempotencyKey: key, content: content, dependencies: dependencies,
        temporaryIDs: temporaryIDs, created: noon, expires: expires)
}

let rejected = MutationFailure(.rejected, code: "BAD", message: "the server said no", details: json("[1]"), time: noon)
let offline = MutationFailure(.offline, message: "no network", time: noon)

/// Runs `body` with a new database, and looks at all of it afterwards.
func withOperations(
    _ options: OperationsDatabase.Options = .init(), _ body: (OperationsDatabase) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let database = try OperationsDatabase(folder: folder, options: options)
        try await body(database)
        try expectSound(database)
        try database.close()
    }
}

func expectSound(_ database: OperationsDatabase, _ comment: Comment? = nil) throws {
    let report = try database.check()
    #expect(report.problems == [], comment)
}

/// The error of `body`; nil, and an issue, if there is none.
func failure(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async -> OperationsError? {
    do {
        try await body()
        Issue.record("nothing was thrown", sourceLocation: sourceLocation)
        return nil
    } catch {
        return error as? OperationsError
    }
}

func expectFailure(
    _ code: OperationsError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Void
) async {
    let error = await failure(sourceLocation: sourceLocation, body)
    #expect(error?.code == code, sourceLocation: sourceLocation)
}

extension OperationsDatabase {
    func mutation(_ id: UUID) throws -> Mutation? {
        guard case .present(let mutation) = try mutations.find(id) else { return nil }
        return mutation
    }

    func outcome(_ id: UUID) throws -> Outcome? {
        guard case .settled(let outcome) = try mutations.find(id) else { return nil }
        return outcome
    }

    func state(_ id: UUID) throws -> MutationState? { try mutation(id)?.state }

    func enqueue(_ draft: MutationDraft) async throws -> UUID { try await mutations.enqueue(draft).id }

    func begin(_ id: UUID) async throws -> Mutation { try await mutations.begin(id, owner: "me", now: noon) }

    /// Through all steps to its outcome.
    func complete(_ id: UUID, temporaryIDs: [TemporaryID: String] = [:]) async throws {
        let attempt = try await begin(id).attempt
        try await mutations.answer(attempt, json("{}"), temporaryIDs: temporaryIDs, now: noon)
        try await mutations.settle(id, now: noon)
    }

    func setAside(_ id: UUID) async throws {
        try await mutations.setAside(id, expecting: .pending, rejected, now: noon)
    }

    func heads(_ partition: String = app, now: Date = noon) throws -> [UUID] {
        try mutations.runnable(in: partition, now: now).heads.map(\.id)
    }
}

/// What a damaged row may say of a pause, at noon, and until when it counts.
struct HostilePause: Sendable, CustomStringConvertible {
    let columns: String
    let end: Date?

    init(_ end: Int64, set: Int64?, counts: Date?) {
        columns = "not_before = \(end), not_before_set = \(set.map(String.init) ?? "NULL")"
        self.end = counts
    }

    var description: String { columns }
}

let hostilePauses = [
    HostilePause(.max, set: noon.milliseconds, counts: after(86_400)),
    HostilePause(.max, set: after(-86_000).milliseconds, counts: after(400)),
    HostilePause(.max, set: after(-86_400).milliseconds, counts: nil),
    HostilePause(.max, set: .min, counts: nil), HostilePause(.max, set: .max, counts: nil),
    HostilePause(.max, set: nil, counts: nil), HostilePause(after(9).milliseconds, set: nil, counts: nil),
    HostilePause(after(9).milliseconds, set: noon.milliseconds, counts: after(9)),
    HostilePause(.min, set: noon.milliseconds, counts: nil),
]
