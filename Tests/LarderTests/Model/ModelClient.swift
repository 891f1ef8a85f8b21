import Foundation
import Larder

/// What a client must hold and show, as plain values: the queue, the cache, and a runner that has done all that it can.
struct ModelClient {
    typealias Code = String

    let tellsRepeats: Bool
    var now: Date
    /// What is stored, without what is expected.
    var base = ModelCache()
    var items: [MutationID: ModelMutation] = [:]
    /// Of all receipts that were ever given.
    var ids: [MutationID] = []
    var outcomes: [MutationID: ModelOutcome] = [:]
    /// Those that have an outcome, as they were before.
    var ended: [MutationID: ModelMutation] = [:]
    /// The real ids of temporary ones.
    var real: [String: String] = [:]
    /// Who reserved a temporary id that may yet become a real one, or has.
    var reservers: [String: MutationID] = [:]
    var runner = Runner()
    /// How often the runner that works was told of a fault of the server.
    var faults: [MutationID: Int] = [:]
    /// Fields that are not the server's, for a reason that is known: what they are of, and their names.
    var excused: Set<String> = []

    struct Runner {
        var isRunning = false
        var isSignedOut = false
        /// How often somebody has signed in since it began.
        var signIns = 0
        var isConnected = true
        /// How often in a row the server asked to be left alone, and for how long it is.
        var pauseCount = 0
        var pauseTurn = 0
        var pausedSince = Date.distantPast
        var pausedUntil = Date.distantPast
        /// As many as `MutationRunner.Options.maximumFaults`.
        static let maximumFaults = 4
        /// The bounds of the pauses, in seconds; the runner's random number is always 1.
        static let (firstPause, longestPause) = (1, 4)
    }

    var sorted: [ModelMutation] { items.values.sorted { $0.place < $1.place } }
    var inFlight: [ModelMutation] { sorted.filter { $0.state == .inFlight } }
    var hasUnsent: Bool { items.values.contains { $0.state != .acknowledged } }

    /// Whether a runner that is to end when nothing is left would end.
    var isDrained: Bool { items.values.allSatisfy { $0.state == .deadLetter || isStalled($0) } }

    /// What is to be seen.
    var shown: ModelCache {
        var shown = base
        for item in sorted where item.state != .deadLetter && !item.isStored {
            shown.take(item.optimistic, item.listChanges)
        }
        return shown
    }

    func isStalled(_ item: ModelMutation) -> Bool {
        item.dependencies.contains { id in
            items[id].map { $0.state == .deadLetter || isStalled($0) } ?? false
        }
    }

    // MARK: The runner

    /// Does what the runner does until it must wait for somebody.
    mutating func run() {
        guard runner.isRunning, !runner.isSignedOut, runner.isConnected else { return }
        for item in sorted where item.state == .pending && item.expires.map({ $0 <= now }) ?? false {
            // That it was not sent in the end says nothing of what was sent before.
            setAside(item.id, item.isInDoubt ? "outcomeUnknown" : "expired")
        }
        guard runner.pauseCount == 0 else { return }
        for item in heads { begin(item) }
    }

    /// Whether the runner tries with one lane, whichever it takes, whether the server has time again.
    var mustProbe: Bool {
        runner.isRunning && !runner.isSignedOut && runner.isConnected && runner.pauseCount > 0
            && !(runner.pausedSince <= now && now < runner.pausedUntil) && inFlight.isEmpty
            && heads.contains { $0.expires.map { now < $0 } ?? true }
    }

    /// - Returns: Whether the runner may have begun this one.
    mutating func probe(_ item: ModelMutation) -> Bool {
        guard heads.contains(where: { $0.id == item.id }) else { return false }
        begin(item)
        return true
    }

    /// An answer has been noted. In the same commit the next of its lane is begun, where the server tells repeats.
    mutating func beginNext(of lane: String) {
        guard tellsRepeats, runner.isRunning, !runner.isSignedOut, runner.isConnected, runner.pauseCount == 0 else {
            return
        }
        for item in heads where item.lane == lane && item.expires.map({ now < $0 }) ?? true { begin(item) }
    }

    private mutating func begin(_ item: ModelMutation) {
        let (signIns, turn) = (runner.signIns, runner.pauseTurn)
        change(item.id) {
            ($0.state, $0.notBefore, $0.notBeforeSet) = (.inFlight, nil, nil)
            $0.attempts += 1
            ($0.signIns, $0.pauseTurn) = (signIns, turn)
        }
    }

    /// The first of each lane, unless it or another of the lane is under way or it waits for another.
    private var heads: [ModelMutation] {
        Dictionary(grouping: sorted, by: \.lane).values.compactMap { lane in
            guard !lane.contains(where: { $0.state == .inFlight }),
                let head = lane.first(where: { $0.state == .pending && !isStalled($0) }), head.dependencies.isEmpty,
                !isWaiting(head)
            else { return nil }
            return head
        }
    }

    private func isWaiting(_ item: ModelMutation) -> Bool {
        guard let time = item.notBefore, now < time else { return false }
        return item.notBeforeSet.map { $0 <= now } ?? true
    }

    /// A runner begins: it ends what another left.
    mutating func begin(_ truth: (ModelMutation) -> ModelEffect?) {
        runner = Runner(isRunning: true, isConnected: runner.isConnected)
        faults = [:]
        for item in sorted where item.state == .acknowledged { settle(item.id) }
        for item in inFlight { end(item.id, .unknown("outcomeUnknown", after: nil), truth(item), isFound: true) }
        run()
    }

    /// Somebody signs in.
    mutating func resume() {
        runner.isSignedOut = false
        runner.signIns += 1
    }

    // MARK: How an attempt ends

    enum End: Equatable {
        case answered(ModelEffect)
        case notTaken(String, after: Int?)
        case unknown(String, after: Int?)
        case busy(after: Int?)
        case conflict(after: Int?)
        case notSignedIn, rejected
    }

    /// The server has taken something up.
    mutating func endPause(_ item: ModelMutation) {
        guard runner.pauseCount > 0, item.pauseTurn == runner.pauseTurn else { return }
        runner.pauseCount = 0
        runner.pauseTurn += 1
    }

    private mutating func beginPause(_ item: ModelMutation, _ asked: Int?) {
        guard item.pauseTurn == runner.pauseTurn else { return }
        runner.pauseCount += 1
        runner.pauseTurn += 1
        let seconds = max(Self.pause(runner.pauseCount), asked ?? 0)
        (runner.pausedSince, runner.pausedUntil) = (now, now.addingTimeInterval(Double(seconds)))
    }

    /// - Parameters:
    ///   - truth: What a check would find: what came of it, or nil where nothing did.
    ///   - isFound: Whether another runner had begun it.
    mutating func end(_ id: MutationID, _ end: End, _ truth: ModelEffect?, isFound: Bool = false) {
        guard let item = items[id] else { return }
        func after(_ asked: Int?) -> Int { isFound ? 0 : max(asked ?? 0, Self.pause(item.attempts)) }
        if !isFound {
            switch end {
            case .answered, .conflict, .rejected, .notSignedIn: endPause(item)
            case .notTaken("throttled", let time), .busy(let time): beginPause(item, time)
            case .notTaken, .unknown: break
            }
        }
        switch end {
        case .answered(let effect):
            acknowledge(id, effect)
            settle(id)
        case .notTaken(let failure, let time): retry(id, failure, after: after(time))
        case .unknown(let failure, let time):
            if tellsRepeats {
                if failure == "serverFault" {
                    faults[id, default: 0] += 1
                    if faults[id] == Runner.maximumFaults {
                        faults[id] = nil
                        return setAside(id, failure)
                    }
                }
                retry(id, failure, after: after(time))
                change(id) { $0.isInDoubt = true }
            } else {
                ask(item, truth, after(time))
            }
        case .busy(let time):
            guard tellsRepeats else { return ask(item, truth, after(time)) }
            retry(id, "serverFault", after: after(time))
            change(id) { $0.isInDoubt = true }
        case .notSignedIn:
            // One that was sent before somebody signed in says nothing of who is signed in now.
            if item.signIns == runner.signIns { runner.isSignedOut = true }
            retry(id, "notSignedIn", after: 0)
        case .rejected: setAside(id, "rejected")
        case .conflict(let time): resolve(item, after(time))
        }
    }

    private static func pause(_ count: Int) -> Int {
        min(Runner.firstPause << min(count - 1, 20), Runner.longestPause)
    }

    /// - Parameter seconds: 0 for at once.
    private mutating func retry(_ id: MutationID, _ failure: String, after seconds: Int) {
        let now = now
        change(id) {
            let isOfOneAttempt = ["offline", "throttled", "notSignedIn"].contains(failure)
            ($0.state, $0.failure) = (.pending, isOfOneAttempt && $0.leavesDoubt ? $0.failure : failure)
            $0.notBefore = seconds == 0 ? nil : now.addingTimeInterval(Double(seconds))
            $0.notBeforeSet = now
        }
    }

    private mutating func ask(_ item: ModelMutation, _ truth: ModelEffect?, _ pause: Int) {
        switch (item.check, truth) {
        case ("truth", let effect?), ("silent truth", let effect?):
            acknowledge(item.id, item.check == "truth" ? effect : nil)
            settle(item.id)
        case ("truth", nil), ("silent truth", nil):
            retry(item.id, "outcomeUnknown", after: pause)
            change(item.id) { $0.isInDoubt = false }
        default: setAside(item.id, "outcomeUnknown")
        }
    }

    private mutating func resolve(_ item: ModelMutation, _ pause: Int) {
        switch item.resolver {
        case "keep":
            setAside(item.id, "conflict")
            _ = discard(item.id, settingAside: false)
        case "change", "fail":
            faults[item.id, default: 0] += 1
            if faults[item.id] == Runner.maximumFaults {
                faults[item.id] = nil
                return setAside(item.id, "conflict")
            }
            retry(item.id, "conflict", after: pause)
            guard item.resolver == "change" else { return }
            change(item.id) {
                $0.isInDoubt = false
                $0.formerKeys.formUnion($0.key.map { [$0] } ?? [])
                $0.key = nil
                if $0.change.kind == .rate { $0.change.stars += 100 }
            }
        default: setAside(item.id, "conflict")
        }
    }

    /// Notes an answer; nil where it is known alone that there was one.
    mutating func acknowledge(_ id: MutationID, _ effect: ModelEffect?) {
        faults[id] = nil
        change(id) { ($0.state, $0.answer) = (.acknowledged, effect) }
        guard let item = items[id], let token = item.reserved else { return }
        guard let effect, item.optimistic?.recipe == token || real[token] != nil else {
            if real[token] == nil { lose(token) }
            return
        }
        guard item.optimistic?.recipe == token else { return }
        real[token] = effect.recipe
        for user in items.values {
            change(user.id) { $0.replace(token, by: effect.recipe, inVariables: user.id != id) }
        }
    }

    /// Stores what was answered, once.
    mutating func store(_ id: MutationID) {
        guard let item = items[id], !item.isStored else { return }
        if let effect = item.answer {
            for (name, field) in effect.fields
            where base.recipes[effect.recipe]?[name].map({ $0.version > field.version }) ?? false {
                excused.insert("\(effect.recipe) \(name)")
            }
            base.take(effect, item.listChanges)
        }
        change(id) { $0.isStored = true }
    }

    mutating func settle(_ id: MutationID) {
        store(id)
        remove(id, ModelOutcome(state: .applied, recipe: items[id]?.answer?.recipe))
    }

    // MARK: Dead letters

    mutating func setAside(_ id: MutationID, _ failure: String) {
        change(id) { ($0.state, $0.failure, $0.answer) = (.deadLetter, failure, nil) }
    }

    mutating func discard(_ id: MutationID, settingAside: Bool) -> Code? {
        if let code = failure(id) { return code }
        let dependents = items.values.filter { $0.dependencies.contains(id) && $0.state != .deadLetter }.map(\.id)
        let failure = items[id]?.failure
        if let token = items[id]?.reserved, real[token] == nil { lose(token) }
        remove(id, ModelOutcome(state: .discarded, failure: failure))
        if settingAside { for dependent in dependents { setAside(dependent, "dependencyDiscarded") } }
        return nil
    }

    /// All that is pending or set aside, unless one is under way.
    mutating func discardAll() -> Code? {
        guard inFlight.isEmpty else { return "operations.unsentWork" }
        for item in sorted.reversed() where item.state == .pending || item.state == .deadLetter {
            if let token = item.reserved, real[token] == nil { lose(token) }
            remove(item.id, ModelOutcome(state: .discarded, failure: items[item.id]?.failure))
        }
        return nil
    }

    mutating func replay(_ id: MutationID, _ expires: Date?) -> Code? {
        if let code = failure(id) { return code }
        guard let item = items[id], item.recipes.allSatisfy({ isKnown($0, to: item) }) else {
            return "operations.unknownTemporaryID"
        }
        let now = now
        change(id) {
            let old = $0.expires.flatMap { now < $0 ? $0 : nil }
            ($0.state, $0.notBefore, $0.notBeforeSet, $0.expires) = (.pending, nil, nil, expires ?? old)
            $0.replays += 1
            $0.isInDoubt = $0.isInDoubt || $0.leavesDoubt
        }
        return nil
    }

    mutating func edit(_ id: MutationID, _ new: ModelChange) -> Code? {
        if let code = failure(id) { return code }
        guard var item = items[id] else { return nil }
        item.change = new
        if item.attempts > 0 {
            item.formerKeys.formUnion(item.key.map { [$0] } ?? [])
            item.key = nil
        }
        guard resolve(&item) else { return "operations.unknownTemporaryID" }
        guard item.dependencies.allSatisfy({ items[$0].map { $0.place < item.place } ?? true }) else {
            return "operations.invalid"
        }
        items[id] = item
        return nil
    }

    // MARK: Queueing

    mutating func enqueue(_ new: ModelMutation) -> Code? {
        guard outcomes[new.id] == nil else { return "operations.duplicate" }
        var item = new
        guard resolve(&item) else { return "operations.unknownTemporaryID" }
        guard new.dependencies.allSatisfy({ items[$0] != nil || outcomes[$0] != nil }) else {
            return "operations.notFound"
        }
        guard items[new.id] == nil else { return "operations.duplicate" }
        if new.dependencies.contains(where: { outcomes[$0]?.state == .discarded }) {
            (item.state, item.failure) = (.deadLetter, "dependencyDiscarded")
        }
        item.dependencies.formIntersection(items.keys)
        item.hadDependencies = !item.dependencies.isEmpty
        items[item.id] = item
        ids.append(item.id)
        if let token = item.reserved { reservers[token] = item.id }
        return nil
    }

    /// Puts real ids where they are known, and makes the mutation wait for those that will give the others.
    ///
    /// - Returns: False where nobody will.
    private func resolve(_ item: inout ModelMutation) -> Bool {
        for recipe in item.recipes where ModelClient.isTemporary(recipe) {
            guard isKnown(recipe, to: item) else { return false }
            if let text = real[recipe] {
                item.replace(recipe, by: text, inVariables: recipe != item.reserved)
            } else if recipe != item.reserved, let maker = reservers[recipe] {
                item.dependencies.insert(maker)
                item.hadDependencies = true
            }
        }
        return true
    }

    private func isKnown(_ recipe: String, to item: ModelMutation) -> Bool {
        !ModelClient.isTemporary(recipe) || recipe == item.reserved || real[recipe] != nil || reservers[recipe] != nil
    }

    static func isTemporary(_ recipe: String) -> Bool { recipe.hasPrefix("larder-temporary-") }

    // MARK: Parts

    private func failure(_ id: MutationID) -> Code? {
        guard let item = items[id] else { return "operations.notFound" }
        return item.state == .deadLetter ? nil : "operations.wrongState"
    }

    private mutating func lose(_ token: String) {
        let maker = reservers.removeValue(forKey: token)
        for user in items.values where user.recipes.contains(token) && user.id != maker && user.state != .deadLetter {
            setAside(user.id, "temporaryIDLost")
        }
    }

    private mutating func remove(_ id: MutationID, _ outcome: ModelOutcome) {
        ended[id] = items.removeValue(forKey: id)
        outcomes[id] = outcome
        for other in items.keys { change(other) { $0.dependencies.remove(id) } }
    }

    mutating func change(_ id: MutationID, _ body: (inout ModelMutation) -> Void) {
        guard var item = items[id] else { return }
        body(&item)
        items[id] = item
    }
}
