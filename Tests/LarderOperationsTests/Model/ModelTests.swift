import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("The queue beside its model", .timeLimit(.minutes(10)))
struct ModelTests {
    @Test("Random steps, refusals, restarts and clocks that jump leave what plain values say", arguments: 0..<4)
    func random(group: Int) async throws {
        let seed = TestSeed.of("queue", group)
        try await withTemporaryFolder { folder in
            let pair = try ModelPair(folder, seed: seed)
            for step in 0..<400 {
                let what = try await pair.step()
                let differences = try pair.differences() + (step % 20 == 0 ? pair.differencesOfOutcomes() : [])
                try #require(differences == [], "seed \(seed), step \(step): \(what)")
            }
            try #require(try pair.differencesOfOutcomes() == [], "seed \(seed)")
            try expectSound(pair.database, "seed \(seed)")
            try pair.database.close()
        }
    }
}

/// The queue and the model, to which the same is done.
private final class ModelPair {
    private let folder: URL
    private(set) var database: OperationsDatabase
    private var models = ["app": ModelQueue(), "other": ModelQueue()]
    private var random: SeededNumbers
    private var now = noon
    private var tokens: [TemporaryID] = []
    private var lastSequence: Int64 = 0

    init(_ folder: URL, seed: UInt64) throws {
        self.folder = folder
        random = SeededNumbers(seed: seed)
        database = try OperationsDatabase(folder: folder)
    }

    private func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
    private func soon() -> Date { now.addingTimeInterval(Double(Int.random(in: -20...60, using: &random))) }

    /// Mostly one that is there in one of these states, sometimes any.
    private func pick(_ model: ModelQueue, _ states: Set<MutationState>) -> UUID {
        let fitting = model.sorted.filter { states.contains($0.state) }
        if !chance(8), let item = fitting.randomElement(using: &random) { return item.id }
        return model.ids.randomElement(using: &random) ?? UUID()
    }

    private func attempt(_ model: ModelQueue) -> Attempt {
        let id = pick(model, [.inFlight])
        let number = model.items[id]?.attempts ?? 1
        return Attempt(mutation: id, number: chance(8) ? number - 1 : number)
    }

    private func object() -> String {
        chance(2) ? "1" : tokens.randomElement(using: &random)?.text ?? "1"
    }

    /// Does something to both.
    ///
    /// - Returns: What.
    func step() async throws -> String {
        let partition = chance(4) ? "other" : "app"
        guard var model = models[partition] else { return "nothing" }
        defer { models[partition] = model }
        let (queue, now) = (database.mutations, now)
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<11: return try await enqueue(partition, &model)
        case 11..<18:
            let id = runnableOrAny(model)
            return try await expect(model.begin(id, "me", now), "begin") {
                _ = try await queue.begin(id, owner: "me", now: now)
            }
        case 18..<21:
            let (attempt, at) = (attempt(model), chance(4) ? nil : soon())
            return try await expect(model.retryLater(attempt, at, now), "retryLater") {
                try await queue.retryLater(attempt, at: at, offline, now: now)
            }
        case 21..<25:
            let attempt = attempt(model)
            let token = model.items[attempt.mutation]?.reserved
            let real = token == nil || chance(4) ? nil : "real-\(Int.random(in: 0..<1000, using: &random))"
            return try await expect(model.answer(attempt, real), "answer") {
                var map: [TemporaryID: String] = [:]
                if let token, let real { map[token] = real }
                try await queue.answer(attempt, json("{}"), temporaryIDs: map, now: now)
            }
        case 25..<28:
            let id = pick(model, [.acknowledged])
            return try await expect(model.settle(id), "settle") { try await queue.settle(id, now: now) }
        case 28..<30:
            let id = pick(model, [.pending, .inFlight, .acknowledged])
            let state = chance(8) ? .pending : model.items[id]?.state ?? .pending
            return try await expect(model.setAside(id, state, .rejected), "setAside") {
                try await queue.setAside(id, expecting: state, rejected, now: now)
            }
        case 30..<32:
            let (id, object) = (pick(model, [.deadLetter]), object())
            return try await expect(model.edit(id, object), "edit") {
                try await queue.edit(id, Revision(variables: json(#"{"id":"\#(object)"}"#)))
            }
        case 32..<34:
            let (id, expires) = (pick(model, [.deadLetter]), chance(2) ? nil : soon())
            return try await expect(model.replay(id, expires, now), "replay") {
                try await queue.replay(id, expires: expires, now: now)
            }
        case 34:
            let (id, aside) = (pick(model, [.deadLetter]), chance(2))
            return try await expect(model.discard(id, settingAside: aside), "discard") {
                try await queue.discard(id, dependents: aside ? .setAside(reason: "given up") : .release, now: now)
            }
        case 35:
            let attempt = attempt(model)
            return try await expect(model.adopt(attempt, "me", "you"), "adopt") {
                try await queue.adopt(attempt, from: "me", to: "you", now: now)
            }
        case 36:
            #expect(try await Set(queue.expire(in: partition, now: now)) == model.expire(now))
            return "expire"
        case 37:
            self.now = soon()
            return "the clock jumps"
        case 38:
            try database.close()
            database = try OperationsDatabase(folder: folder)
            return "restart"
        default: return try await end(partition, &model)
        }
    }

    private func runnableOrAny(_ model: ModelQueue) -> UUID {
        let heads = model.runnable(now).heads
        return (chance(4) ? nil : heads.randomElement(using: &random)?.id) ?? pick(model, [.pending])
    }

    private func enqueue(_ partition: String, _ model: inout ModelQueue) async throws -> String {
        let token = chance(3) ? TemporaryID() : nil
        let object = chance(6) ? token?.text ?? "1" : object()
        let others = (0..<2).compactMap { _ in chance(3) ? pick(model, Set(MutationState.allCases)) : nil }
        // One of another partition would be refused.
        let dependencies = others.filter { id in
            !models.contains { $0.key != partition && ($0.value.items[id] != nil || $0.value.outcomes[id] != nil) }
        }
        let draft = draft(
            "\(Int.random(in: 0..<3, using: &random))", in: partition, variables: #"{"id":"\#(object)"}"#,
            dependencies: dependencies, temporaryIDs: token.map { [$0] } ?? [], expires: chance(5) ? soon() : nil)
        model.ids.append(draft.id)
        if let token { tokens.append(token) }
        guard let (text, maker) = model.meaning(of: object, own: token) else {
            return try await expect(.unknownTemporaryID, "enqueue") { _ = try await database.enqueue(draft) }
        }
        guard dependencies.allSatisfy({ model.items[$0] != nil || model.outcomes[$0] != nil }) else {
            return try await expect(.notFound, "enqueue") { _ = try await database.enqueue(draft) }
        }
        let accepted = try await database.mutations.enqueue(draft)
        #expect(accepted.sequence > lastSequence)
        lastSequence = accepted.sequence
        var item = ModelQueue.Item(
            id: draft.id, sequence: accepted.sequence, lane: draft.lane,
            dependencies: Set(dependencies.filter { model.items[$0] != nil }), reserved: token, object: text,
            expires: draft.expires)
        if let maker { item.dependencies.insert(maker) }
        if dependencies.contains(where: { model.outcomes[$0] == .discarded }) {
            (item.state, item.failure) = (.deadLetter, .dependencyDiscarded)
        }
        model.items[item.id] = item
        if let token { model.reservers[token] = item.id }
        return "enqueue"
    }

    /// What ends much at once, and is therefore rare.
    private func end(_ partition: String, _ model: inout ModelQueue) async throws -> String {
        if chance(4) {
            let expected = model.discardAll()
            do throws(OperationsError) {
                try await database.mutations.discardAll(in: partition, now: now)
                #expect(expected == nil)
            } catch { #expect(error.code == expected) }
            return "discardAll"
        }
        // It is of all partitions.
        models[partition] = model
        for name in models.keys { models[name]?.prune() }
        model.prune()
        try await database.mutations.prune(before: after(1_000_000))
        return "prune"
    }

    private func expect(
        _ code: OperationsError.Code?, _ what: String, _ body: () async throws -> Void
    ) async throws -> String {
        var found: OperationsError.Code?
        do { try await body() } catch let error as OperationsError { found = error.code }
        try #require(found == code, "\(what)")
        return what
    }

    /// What is not as the model says.
    func differences() throws -> [String] {
        try models.flatMap { name, model in try differences(name, model).map { "\(name): \($0)" } }
    }

    private func differences(_ name: String, _ model: ModelQueue) throws -> [String] {
        var found: [String] = []
        let mutations = try database.mutations.list(MutationFilter(partition: name))
        let items = mutations.map { mutation in
            // The model knows when a time was worked out, and who reserved what; the queue shows both by what it does.
            ModelQueue.Item(
                id: mutation.id, sequence: mutation.sequence, lane: mutation.lane, state: mutation.state,
                dependencies: Set(mutation.dependencies), reserved: model.items[mutation.id]?.reserved,
                object: Self.object(in: mutation), attempts: mutation.attempts, owner: mutation.owner,
                expires: mutation.expires, notBefore: mutation.notBefore,
                notBeforeSet: model.items[mutation.id]?.notBeforeSet, failure: mutation.failure?.class,
                isAnswered: mutation.answer != nil)
        }
        if items != model.sorted { found.append("mutations \(items) instead of \(model.sorted)") }
        for mutation in mutations where model.items[mutation.id].map(model.isStalled) != mutation.isStalled {
            found.append("\(mutation.id) stalled \(mutation.isStalled)")
        }
        let runnable = try database.mutations.runnable(in: name, now: now)
        if runnable != model.runnable(now) { found.append("\(runnable) instead of \(model.runnable(now))") }
        let counts = Dictionary(grouping: model.items.values, by: \.state).mapValues(\.count)
        if try database.mutations.counts(in: name) != counts { found.append("counts") }
        let unsent = model.items.values.contains { $0.state != .acknowledged }
        if try database.mutations.hasUnsent(in: name) != unsent { found.append("unsent") }
        let left = Set(model.items.values.filter { $0.owner == "you" }.map(\.id))
        if try Set(database.mutations.recover(in: name) { $0 == "me" }.map(\.id)) != left { found.append("recover") }
        return found
    }

    func differencesOfOutcomes() throws -> [String] {
        try models.flatMap { name, model in try differencesOfOutcomes(name, model) }
    }

    private func differencesOfOutcomes(_ name: String, _ model: ModelQueue) throws -> [String] {
        var found: [String] = []
        for id in model.ids {
            guard case .settled(let outcome) = try database.mutations.find(id) else { continue }
            if model.outcomes[id] != outcome.kind || outcome.partition != name { found.append("outcome of \(id)") }
        }
        for id in model.outcomes.keys {
            guard case .settled = try database.mutations.find(id) else {
                found.append("no outcome of \(id)")
                continue
            }
        }
        return found
    }

    private static func object(in mutation: Mutation) -> String {
        let object = try? JSONSerialization.jsonObject(with: Data(mutation.content.variables)) as? [String: String]
        return object?["id"] ?? "none"
    }
}
