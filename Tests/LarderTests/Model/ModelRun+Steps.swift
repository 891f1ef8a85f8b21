import Foundation
import Larder
import LarderOperations
import Testing

extension ModelRun {
    /// Does something to both.
    ///
    /// - Returns: What.
    func step() async throws -> String {
        let what = try await doSomething()
        model.run()
        return what
    }

    private func doSomething() async throws -> String {
        switch Int.random(in: 0..<60, using: &random) {
        case 0..<17: return try await enqueue()
        case 17..<37 where !model.inFlight.isEmpty: return try await endAttempt()
        case 37..<39: return try await othersWrite()
        case 39: return try await fetch()
        case 40..<45: return moveClock()
        case 45: return try await edit()
        case 46..<48: return try await replay()
        case 48: return try await discard()
        case 49..<51: return try await restart()
        case 51:
            connectivity.set(!connectivity.isConnected)
            model.runner.isConnected = connectivity.isConnected
            return "the network is there: \(connectivity.isConnected)"
        case 52: return chance(3) ? try await discardAll() : "nothing"
        case 53: return chance(2) ? try await stop() : "nothing"
        default:
            guard let (runner, _) = runner else {
                startRunner()
                return "a runner begins"
            }
            if model.runner.isSignedOut {
                model.resume()
                runner.resume()
                return "somebody signs in"
            }
            return try await model.inFlight.isEmpty ? moveClock() : endAttempt()
        }
    }

    // MARK: Queueing

    private func recipe() -> String {
        if chance(3), let token = temporaryIDs.randomElement(using: &random) { return token.text }
        return server.recipes.keys.sorted().randomElement(using: &random) ?? "r0"
    }

    private func enqueue() async throws -> String {
        mutationCount += 1
        let tag = mutationCount
        let kind: ModelChange.Kind = [.add, .rate, .rate, .rate, .unlist].randomElement(using: &random) ?? .rate
        let token = kind == .add && !chance(4) ? TemporaryObjectID() : nil
        let change = ModelChange(
            kind: kind, tag: tag, recipe: kind == .add ? "" : chance(30) ? "r999" : recipe(), stars: 1000 + tag)
        var item = ModelMutation(
            id: MutationID(UUID()), place: tag, lane: ["", "a", "b"].randomElement(using: &random) ?? "",
            change: change)
        if chance(40), let id = model.ids.randomElement(using: &random) { item.id = id }
        item.key = chance(5) ? "key \(tag)" : item.id.description
        item.reserved = token?.text
        let shown = token?.text ?? (kind == .add ? "new \(tag)" : change.recipe)
        if !chance(4) { item.optimistic = optimistic(change, shown) }
        if kind == .unlist, !chance(4) { item.listChanges = [ModelListChange(recipe: shown, isRemoval: true)] }
        if kind == .add, !chance(4) || chance(10) {
            let places: [ListChange.Place] = [
                .start, .end, .ascending(field: "stars"), .descending(field: "stars"),
            ]
            item.listChanges = [
                ModelListChange(recipe: shown, place: places.randomElement(using: &random) ?? .start)
            ]
        }
        if chance(4), let other = model.ids.randomElement(using: &random) { item.dependencies = [other] }
        if chance(12), let other = model.ids.randomElement(using: &random) { item.dependencies.insert(other) }
        item.resolver = chance(3) ? nil : Self.resolverNames.randomElement(using: &random)
        item.check = chance(4) ? nil : Self.checkNames.randomElement(using: &random)
        item.expires = chance(6) ? soon() : nil
        var queued = MutationOptions(
            id: item.id, lane: MutationLane(item.lane), dependencies: Array(item.dependencies),
            optimisticResponse: item.optimistic.map(change.data), listChanges: item.listChanges.map(\.change),
            temporaryIDs: token.map { [$0] } ?? [],
            idempotencyKey: item.key == item.id.description ? nil : item.key,
            expires: item.expires, resolver: item.resolver, check: item.check)
        if chance(40) {
            queued.optimisticResponse = ["rate": "nonsense"]
            try await expect("larder.data", "a misfit") { [app] in
                try await app.enqueue(change.operation, options: queued)
            }
            return "what does not fit is refused"
        }
        if let token { temporaryIDs.append(token) }
        let code = model.enqueue(item)
        try await expect(code, "enqueue") { [app] in try await app.enqueue(change.operation, options: queued) }
        if code == nil, let token, chance(2) { try watch("Recipe:\(token.text)") }
        return "enqueue \(change) as \(item.id)\(code.map { ", \($0)" } ?? "")"
    }

    private func optimistic(_ change: ModelChange, _ shown: String) -> ModelEffect {
        var effect = ModelEffect(recipe: shown)
        switch change.kind {
        case .add:
            effect.fields["title"] = .init(.string(change.title), -1)
            effect.fields["stars"] = .init(.int(Int64(chance(2) ? 0 : change.tag)), -1)
        case .rate: effect.fields["stars"] = .init(.int(Int64(change.stars)), -1)
        case .unlist: break
        }
        return effect
    }

    private func soon() -> Date { model.now.addingTimeInterval(Double(Int.random(in: -3...20, using: &random))) }

    // MARK: Others

    /// Somebody else changes what the server has; the program may hear of it.
    private func othersWrite() async throws -> String {
        let recipe = server.recipes.keys.sorted().randomElement(using: &random) ?? "r0"
        let value = Value.int(Int64.random(in: 10_000..<20_000, using: &random))
        server.set(recipe, "stars", value)
        guard chance(2), let field = server.recipes[recipe]?["stars"] else {
            model.excused.insert("\(recipe) stars")
            return "others change \(recipe)"
        }
        model.base.take(ModelEffect(recipe: recipe, fields: ["stars": field]), [])
        model.excused.remove("\(recipe) stars")
        try await app.write("Recipe:\(recipe)", GraphQLFragment("fragment F on Recipe { stars }"), ["stars": value])
        return "others change \(recipe), which is written"
    }

    func fetch() async throws -> String {
        gate.setListAnswer(server.listAnswer.json)
        _ = try await app.fetch(Self.list, policy: .networkOnly)
        for recipe in server.list {
            model.base.take(ModelEffect(recipe: recipe, fields: server.recipes[recipe] ?? [:]), [])
            for name in ["title", "stars"] { model.excused.remove("\(recipe) \(name)") }
        }
        model.base.list = server.list
        return "fetch"
    }

    private func moveClock() -> String {
        let seconds: Int =
            switch Int.random(in: 0..<12, using: &random) {
            case 0: -86_400 * 2
            case 1: 86_400 * 40
            case 2, 3: Int.random(in: -10...0, using: &random)
            default: Int.random(in: 1...8, using: &random)
            }
        setClock(model.now.addingTimeInterval(Double(seconds)))
        return "the clock goes on by \(seconds)"
    }

    func setClock(_ time: Date) {
        model.now = time
        clock.now = time
        // Whoever waits looks again.
        connectivity.set(connectivity.isConnected)
        model.run()
    }

    // MARK: Dead letters

    /// Mostly one that is set aside, sometimes any.
    private func pick() -> MutationID {
        let dead = model.sorted.filter { $0.state == .deadLetter }
        if !chance(10), let item = dead.randomElement(using: &random) { return item.id }
        return model.ids.randomElement(using: &random) ?? MutationID(UUID())
    }

    private func edit() async throws -> String {
        let id = pick()
        var change = model.items[id]?.change ?? ModelChange(kind: .rate, tag: 0, recipe: "r0")
        if change.kind != .add { change.recipe = recipe() }
        change.stars += 5000
        let code = model.edit(id, change)
        try await expect(code, "edit") { [app] in try await app.editMutation(id, variables: change.variables) }
        return "edit \(id) to \(change)\(code.map { ", \($0)" } ?? "")"
    }

    private func replay() async throws -> String {
        let (id, expires) = (pick(), chance(4) ? soon() : nil)
        let code = model.replay(id, expires)
        try await expect(code, "replay") { [app] in try await app.replayMutation(id, expires: expires) }
        return "replay \(id)\(code.map { ", \($0)" } ?? "")"
    }

    private func discard() async throws -> String {
        let (id, settingAside) = (pick(), chance(2))
        let code = model.discard(id, settingAside: settingAside)
        try await expect(code, "discard") { [app] in
            try await app.discardMutation(id, dependents: settingAside ? .setAside : .release)
        }
        return "discard \(id)\(code.map { ", \($0)" } ?? "")"
    }

    /// As another process does it: this one finds out.
    private func discardAll() async throws -> String {
        let other = try OperationsDatabase(folder: folder)
        var found: String?
        do throws(OperationsError) {
            try await other.mutations.discardAll(in: Store.unnamedPartition, now: model.now)
        } catch { found = error.code.rawValue }
        try other.close()
        let code = model.discardAll()
        try #require(found == code, "discard all")
        return "another process discards all\(code.map { ", \($0)" } ?? "")"
    }

    func expect(_ code: String?, _ what: String, _ body: () async throws -> Void) async throws {
        var found: String?
        do { try await body() } catch let error as LarderError { found = error.code.rawValue }
        try #require(found == code, "\(what)")
    }
}
