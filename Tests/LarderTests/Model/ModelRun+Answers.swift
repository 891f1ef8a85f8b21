import Foundation
import Larder
import Testing

extension ModelRun {
    /// How an exchange ends: for the runner, and for the model.
    private struct Exchange {
        var result: Result<GraphQLAnswer, TransportError>
        var end: ModelClient.End
    }

    /// The server answers one of the requests that are held, or does not.
    ///
    /// - Parameter isKind: It is carried out, and the answer comes.
    func endAttempt(isKind: Bool = false) async throws -> String {
        let held = held
        guard let (number, request) = held.randomElement(using: &random), let item = item(of: request) else {
            return "nothing"
        }
        let exchange = isKind ? carriedOut(item) : exchange(item)
        truths.set([item.id: truth(item).map(item.change.data)])
        // An answer that ends a pause lets every lane go on, before the end of the process or not: nobody can say
        // which.
        if case .answered(let effect) = exchange.end, !isKind, chance(12), model.runner.pauseCount == 0 {
            return try await endProcess(item, effect, number, exchange.result, held)
        }
        gate.end(number, exchange.result)
        model.end(item.id, exchange.end, truth(item))
        model.run()
        return "\(item.change.tag) ends: \(exchange.end)"
    }

    /// In an order that the seed repeats.
    private var held: [(number: Int, request: GraphQLRequest)] {
        gate.held.sorted { Self.tag(of: $0.request) ?? 0 < Self.tag(of: $1.request) ?? 0 }
    }

    private func item(of request: GraphQLRequest) -> ModelMutation? {
        guard let tag = Self.tag(of: request) else { return nil }
        return model.items.values.first { $0.change.tag == tag }
    }

    static func tag(of request: GraphQLRequest) -> Int? {
        guard case .object(let variables)? = try? Value(json: request.variables), case .int(let tag)? = variables["tag"]
        else { return nil }
        return Int(tag)
    }

    // MARK: What the server does

    private func answer(_ text: [UInt8], retryAfter: Int? = nil) -> Result<GraphQLAnswer, TransportError> {
        .success(GraphQLAnswer(body: text, status: 200, retryAfter: retryAfter.map { .seconds($0) }))
    }

    private func refusal(_ code: String) -> [UInt8] {
        Array(#"{"data":null,"errors":[{"message":"no","extensions":{"code":"\#(code)"}}]}"#.utf8)
    }

    private func carriedOut(_ item: ModelMutation, starsAdded: Int = 0) -> Exchange {
        guard let effect = carryOut(item, starsAdded: starsAdded) else {
            return Exchange(result: answer(refusal("NO_SUCH_RECIPE")), end: .rejected)
        }
        return Exchange(result: answer(Value.object(["data": item.change.data(effect)]).json), end: .answered(effect))
    }

    private func carryOut(_ item: ModelMutation, starsAdded: Int = 0) -> ModelEffect? {
        server.carryOut(item.change, key: item.key, lane: item.lane, starsAdded: starsAdded)
    }

    /// It may take effect, and nobody will be told.
    func maybeCarryOut(_ item: ModelMutation) {
        guard chance(2), let effect = carryOut(item) else { return }
        for name in effect.fields.keys { model.excused.insert("\(effect.recipe) \(name)") }
    }

    private func exchange(_ item: ModelMutation) -> Exchange {
        let time = chance(2) ? Int.random(in: 1...6, using: &random) : nil
        let after = time.map { Duration.seconds($0) }
        func status(_ status: Int) -> Result<GraphQLAnswer, TransportError> {
            .failure(TransportError(.status, "status \(status)", status: status, retryAfter: after))
        }
        // Whoever tells a repeat does not refuse what it has carried out.
        switch Int.random(in: (server.knows(item.key) ? 4 : 0)..<26, using: &random) {
        case 0: return Exchange(result: answer(refusal("BAD")), end: .rejected)
        case 1: return Exchange(result: status(422), end: .rejected)
        case 2: return Exchange(result: answer(refusal("CONFLICT")), end: .conflict(after: nil))
        case 3: return Exchange(result: status(409), end: .conflict(after: time))
        case 4:
            return Exchange(
                result: chance(2) ? status(401) : answer(refusal("UNAUTHENTICATED")), end: .notSignedIn)
        case 5:
            if chance(2) { return Exchange(result: status(429), end: .notTaken("throttled", after: time)) }
            maybeCarryOut(item)
            return Exchange(result: status(503), end: .busy(after: time))
        case 6: return Exchange(result: .failure(.away), end: .notTaken("offline", after: nil))
        case 7, 8:
            maybeCarryOut(item)
            return Exchange(result: status(500), end: .unknown("serverFault", after: time))
        case 9, 10, 11:
            maybeCarryOut(item)
            let code: TransportError.Code = chance(2) ? .timedOut : .interrupted
            return Exchange(result: .failure(TransportError(code, "lost")), end: .unknown("outcomeUnknown", after: nil))
        case 12:
            // It is an answer, but to something else.
            maybeCarryOut(item)
            let text = [#"{"data":{"rate":7}}"#, "[]", "", "{"].randomElement(using: &random) ?? ""
            return Exchange(result: answer(Array(text.utf8)), end: .unknown("serverFault", after: nil))
        case 13, 14: return carriedOut(item, starsAdded: 10_000)
        case 15: return withErrors(item)
        default: return carriedOut(item)
        }
    }

    /// The server does what it is asked for, and cannot say all of what came of it.
    private func withErrors(_ item: ModelMutation) -> Exchange {
        guard item.change.kind != .unlist, var effect = carryOut(item) else { return carriedOut(item) }
        effect.fields["stars"] = .init(.null, 0)
        let response: Value = [
            "data": item.change.data(effect),
            "errors": [["message": "no stars", "path": [.string(item.change.kind.rawValue), "stars"]]],
        ]
        effect.fields["stars"] = nil
        model.excused.insert("\(effect.recipe) stars")
        return Exchange(result: answer(response.json), end: .answered(effect))
    }

    // MARK: Ends of the process

    /// The process ends at a step of an answer's way.
    private func endProcess(
        _ item: ModelMutation, _ effect: ModelEffect, _ number: Int, _ result: Result<GraphQLAnswer, TransportError>,
        _ held: [(number: Int, request: GraphQLRequest)]
    ) async throws -> String {
        // What is settled is seen to be before its step is told of: that of another may come.
        let step: MutationRunner.KillPoint =
            [.received, .acknowledged, .stored].randomElement(using: &random) ?? .stored
        end.set(step)
        gate.end(number, result)
        var triesLeft = 10_000
        while end.isSet {
            triesLeft -= 1
            try #require(triesLeft > 0, "\(step) is never reached")
            try await Task.sleep(for: .milliseconds(1))
        }
        switch step {
        case .acknowledged:
            model.endPause(item)
            model.acknowledge(item.id, effect)
            model.beginNext(of: item.lane)
        case .stored:
            model.endPause(item)
            model.acknowledge(item.id, effect)
            model.beginNext(of: item.lane)
            model.store(item.id)
        default: for name in effect.fields.keys { model.excused.insert("\(effect.recipe) \(name)") }
        }
        await endRunner(reachesDisk: false)
        try store.close()
        try reopen()
        return "\(item.change.tag) is answered, and the process ends after \(step)"
    }

    func restart() async throws -> String {
        let isSudden = chance(2)
        if isSudden { try store.close() }
        await endRunner(reachesDisk: !isSudden)
        try store.close()
        try reopen()
        return isSudden ? "restart while the runner works" : "restart"
    }

    func stop() async throws -> String {
        await endRunner(reachesDisk: true)
        return "the runner is stopped"
    }

    /// The runner is stopped, and waits for what is under way, of which the answers are lost.
    ///
    /// - Parameter reachesDisk: Whether that is noted; not where the process has ended.
    private func endRunner(reachesDisk: Bool) async {
        guard let (_, task) = runner else { return }
        task.cancel()
        model.runner.isRunning = false
        gate.cut()
        let held = held
        for request in held.map(\.request) { item(of: request).map(maybeCarryOut) }
        truths.set(
            Dictionary(
                uniqueKeysWithValues: held.compactMap { held in
                    item(of: held.request).map { ($0.id, truth($0).map($0.change.data)) }
                }))
        for (number, request) in held {
            if reachesDisk, let item = item(of: request) {
                model.end(item.id, .unknown("outcomeUnknown", after: nil), truth(item))
            }
            gate.end(number, .failure(TransportError(.interrupted, "lost")))
        }
        // What it fails with is that the store is closed, if that is so.
        do { try await task.value } catch {
            #expect((error as? LarderError)?.code == .parked, "\(error)")
        }
        runner = nil
        model.runner.isRunning = false
        model.runner.isSignedOut = false
    }

    private func reopen() throws {
        (store, app) = try Self.open(folder, schema, clock, gate)
        try watchAll()
        if !chance(3) { startRunner() }
    }
}
