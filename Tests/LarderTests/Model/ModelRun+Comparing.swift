import Foundation
import Larder
import LarderRecords
import Testing

extension ModelRun {
    /// Waits until the store is as the model says, which must be soon.
    func settle(_ place: @autoclosure () -> String) async throws {
        // Counted, not timed: the tests may be stopped for a while.
        var triesLeft = 10_000
        while let difference = try difference() {
            triesLeft -= 1
            try #require(triesLeft > 0, "\(place())\n\(difference)")
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// The first thing that is not as the model says.
    func difference() throws -> String? {
        if model.mustProbe {
            guard let request = gate.held.first?.request, let tag = Self.tag(of: request),
                let item = model.items.values.first(where: { $0.change.tag == tag }), model.probe(item)
            else { return "no lane tries whether the server has time" }
        }
        return try self.differenceOfAll()
    }

    private func differenceOfAll() throws -> String? {
        try differenceOfQueue() ?? differenceOfRequests() ?? differenceOfOutcomes() ?? differenceOfAnswers()
            ?? differenceOfBase() ?? differenceOfWatches() ?? differenceOfEffects()
    }

    /// Each mutation took effect once at most, once if it was applied, and in its lane's order.
    private func differenceOfEffects() -> String? {
        var last: [String: Int] = [:]
        let items = Dictionary(
            uniqueKeysWithValues: model.ids.compactMap { id in
                (model.items[id] ?? model.ended[id]).map { ($0.change.tag, $0) }
            })
        for effect in server.effects {
            guard let item = items[effect.tag] else { return "\(effect.tag) was never queued" }
            // Those that waited for others, or for somebody to have them sent again, are passed by the rest of the
            // lane.
            guard !item.hadDependencies, item.replays == 0 else { continue }
            if let before = last[item.lane], before > item.place { return "\(item.change.tag) came after \(before)" }
            last[item.lane] = item.place
        }
        for item in items.values {
            let count = server.effects(of: item.change.tag).count
            // What was changed after it was sent is no repeat.
            let isRepeat = model.tellsRepeats && item.formerKeys.isEmpty
            if count > (isRepeat ? 1 : 1 + item.replays) { return "\(item.change.tag) took effect \(count) times" }
            if model.outcomes[item.id]?.state == .applied, count == 0 { return "\(item.change.tag) took no effect" }
            if item.state == .deadLetter, ["expired", "rejected"].contains(item.failure), item.replays == 0, count > 0 {
                return "\(item.change.tag) is set aside as \(item.failure ?? ""), and took effect"
            }
        }
        return nil
    }

    private func differenceOfRequests() -> String? {
        let requests = gate.held.map(\.request)
        let tags = requests.compactMap(Self.tag)
        let expected = model.inFlight.map(\.change.tag)
        // Without a runner nothing is held.
        guard Set(tags) == (runner == nil ? [] : Set(expected)), tags.count == Set(tags).count else {
            let state = runner.map { "\($0.0.state)" } ?? "-"
            return "requests \(tags.sorted()) instead of \(expected.sorted()), while \(state)"
        }
        for request in requests {
            guard let item = model.inFlight.first(where: { $0.change.tag == Self.tag(of: request) }) else { continue }
            let variables = Value.object(item.change.variables)
            if (try? Value(json: request.variables)) != variables {
                return "\(String(decoding: request.variables, as: UTF8.self)) instead of \(variables)"
            }
            guard model.tellsRepeats else { continue }
            let key = request.headers.first { $0.name == "Idempotency-Key" }?.value ?? ""
            if item.key == nil, !key.isEmpty, !item.formerKeys.contains(key) {
                model.change(item.id) { $0.key = key }
            } else if item.key != key {
                return "key \(key) instead of \(item.key ?? "another") for \(item.change.tag)"
            }
        }
        return nil
    }

    private func differenceOfQueue() throws -> String? {
        func text(_ id: MutationID, _ state: MutationStatus.State, _ attempts: Int, _ failure: String?, _ stalled: Bool)
            -> String
        { "\(id) \(state) \(attempts) \(failure ?? "-")\(stalled ? " stalled" : "")" }
        let found = try app.mutations().map {
            text($0.id, $0.state, $0.attempts, $0.failure?.kind.rawValue, $0.isStalled)
        }
        let expected = model.sorted.map { text($0.id, $0.state, $0.attempts, $0.failure, model.isStalled($0)) }
        if found != expected { return "mutations \(found) instead of \(expected)" }
        let dead = try app.mutations(in: [.deadLetter]).map(\.id)
        if dead != model.sorted.filter({ $0.state == .deadLetter }).map(\.id) { return "dead letters \(dead)" }
        let hasUnsent = try app.hasUnsentMutations()
        if hasUnsent != model.hasUnsent { return "has unsent ones: \(hasUnsent)" }
        return nil
    }

    private func differenceOfOutcomes() throws -> String? {
        for id in model.ids {
            let status = try app.mutation(id).status()
            guard let outcome = model.outcomes[id] else {
                if status?.state != model.items[id]?.state { return "\(id) is \(String(describing: status))" }
                continue
            }
            let recipe = try status?.storedResult.map { result -> String in
                guard case .object(let data) = try Value(json: result), case .object(let members)? = data.values.first,
                    case .string(let recipe)? = members["id"]
                else { return "?" }
                return recipe
            }
            let found = status.map { ModelOutcome(state: $0.state, failure: $0.failure?.kind.rawValue, recipe: recipe) }
            if found != outcome { return "\(id) ended as \(String(describing: found)) instead of \(outcome)" }
        }
        return nil
    }

    /// All ids of which something may be known.
    private var recipes: [String] { server.recipes.keys.sorted() + temporaryIDs.map(\.text) + ["r999"] }

    private func differenceOfAnswers() throws -> String? {
        let shown = model.shown
        for recipe in recipes {
            let response = try app.read("Recipe:\(recipe)", Self.card, allowsPartial: true)
            for name in ["title", "stars"] {
                let (found, expected) = (response[name].flatMap(value), shown.recipes[recipe]?[name]?.value)
                if found != expected {
                    return "\(name) of \(recipe) reads \(found ?? "nothing") instead of \(expected ?? "nothing")"
                }
            }
        }
        let list = try app.read(Self.list, allowsPartial: true)["recipes"]
        let ids = list?.elements.map { $0["id"]?.string ?? "?" }
        if ids != shown.list { return "the list reads \(ids ?? []) instead of \(shown.list ?? [])" }
        for element in list?.elements ?? [] {
            let expected = shown.recipes[element["id"]?.string ?? ""]
            for name in ["title", "stars"] where element[name].flatMap(value) != expected?[name]?.value {
                return "\(name) in the list reads \(element[name].map { "\($0)" } ?? "nothing")"
            }
        }
        return nil
    }

    private func value(_ value: ResponseValue) -> Value? {
        value.string.map(Value.string) ?? value.int.map(Value.int) ?? (value.isNull ? .null : nil)
    }

    /// What is stored, whatever layers are over it.
    private func differenceOfBase() throws -> String? {
        let inspection = app.records.inspect
        let keys = try Set(inspection.keys())
        let expected = Set(
            model.base.recipes.keys.map { "Recipe:\($0)" } + (model.base.list == nil ? [] : ["QUERY_ROOT"]))
        if keys != expected { return "stored are \(keys.sorted()) instead of \(expected.sorted())" }
        for (recipe, fields) in model.base.recipes {
            let record = try inspection.record(key: "Recipe:\(recipe)")
            for name in ["title", "stars"] {
                let found = record?.fields.first { $0.name == name }?.value.json
                if found != fields[name]?.value.json { return "\(name) of \(recipe) is stored otherwise" }
            }
        }
        let root = try inspection.record(key: "QUERY_ROOT")
        let list = root?.fields.first { $0.name == "recipes" }?.value
        let stored = model.base.list.map { StoredValue.list($0.map { .reference("Recipe:\($0)") }) }
        return list == stored ? nil : "the list is stored as \(String(describing: list))"
    }

    private func differenceOfWatches() throws -> String? {
        for (key, latest) in watches {
            let response =
                key.isEmpty
                ? try app.read(Self.list, allowsPartial: true)
                : try app.read(CacheKey(key), Self.card, allowsPartial: true)
            if latest.response != response {
                return "the watcher of \(key.isEmpty ? "the list" : key) was told "
                    + "\(latest.response.map { "\($0), missing \($0.missing)" } ?? "nothing") and not "
                    + "\(response), missing \(response.missing)"
            }
        }
        return nil
    }

    // MARK: Watching

    func watchAll() throws {
        watches = [:]
        try watch("")
        for recipe in ["r0", "r1", "r2", "r4", "r5"] + temporaryIDs.suffix(3).map(\.text) {
            try watch("Recipe:\(recipe)")
        }
    }

    /// - Parameter key: Empty for the list.
    func watch(_ key: String) throws {
        watches[key] = LatestState(try key.isEmpty ? app.watch(Self.list) : app.watch(CacheKey(key), Self.card))
    }
}
