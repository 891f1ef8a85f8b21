import Foundation

@testable import LarderOperations

/// What the queue of one partition must be, as plain values: no file, no indices, everything worked out when it is
/// asked.
struct ModelQueue {
    struct Item: Equatable {
        var id: UUID
        var sequence: Int64
        var lane: String
        var state = MutationState.pending
        var dependencies: Set<UUID>
        var reserved: TemporaryID?
        /// The id in its variables: a temporary one, or another.
        var object: String
        var attempts = 0
        var owner: String?
        var expires: Date?
        var notBefore: Date?
        var notBeforeSet: Date?
        var failure: MutationFailure.Class?
        var isAnswered = false
    }

    typealias Code = OperationsError.Code

    /// All that there ever were, settled and refused ones too.
    var ids: [UUID] = []
    var items: [UUID: Item] = [:]
    var outcomes: [UUID: Outcome.Kind] = [:]
    var real: [TemporaryID: String] = [:]
    /// Who reserved an id that may yet become real, or has.
    var reservers: [TemporaryID: UUID] = [:]

    var sorted: [Item] { items.values.sorted { $0.sequence < $1.sequence } }

    func isStalled(_ item: Item) -> Bool {
        item.dependencies.contains { id in
            items[id].map { $0.state == .deadLetter || isStalled($0) } ?? false
        }
    }

    func isWaiting(_ item: Item, _ now: Date) -> Bool {
        guard let time = item.notBefore, let set = item.notBeforeSet else { return false }
        return set <= now && now < time
    }

    /// The first of each lane that has a place there, unless it or another of the lane is in flight or it waits for
    /// another.
    private var free: [Item] {
        Dictionary(grouping: sorted, by: \.lane).sorted { $0.key < $1.key }.compactMap { _, lane in
            guard !lane.contains(where: { $0.state == .inFlight }),
                let head = lane.first(where: { $0.state == .pending && !isStalled($0) }), head.dependencies.isEmpty
            else { return nil }
            return head
        }
    }

    func runnable(_ now: Date) -> Runnable {
        let free = free.filter { item in item.expires.map { now < $0 } ?? true }
        let expiry = items.values.filter { $0.state == .pending }.compactMap(\.expires).min()
        let times = free.filter { isWaiting($0, now) }.compactMap(\.notBefore) + (expiry.map { [$0] } ?? [])
        return Runnable(
            heads: free.filter { !isWaiting($0, now) }.map { .init(id: $0.id, sequence: $0.sequence, lane: $0.lane) },
            lookAgain: times.min(), mustExpire: expiry.map { $0 <= now } ?? false)
    }

    /// What `object` becomes, and whom it must wait for; nil if nobody knows it.
    func meaning(of object: String, own: TemporaryID?) -> (object: String, maker: UUID?)? {
        guard let id = TemporaryID(object), id != own else { return (object, nil) }
        if let text = real[id] { return (text, nil) }
        return reservers[id].map { (object, $0) }
    }

    // MARK: Steps: each says how it must fail, or makes itself.

    private func failure(_ id: UUID, _ state: MutationState) -> Code? {
        guard let item = items[id] else { return .notFound }
        return item.state == state ? nil : .wrongState
    }

    private func failure(_ attempt: Attempt) -> Code? {
        if let code = failure(attempt.mutation, .inFlight) { return code }
        return items[attempt.mutation]?.attempts == attempt.number ? nil : .wrongState
    }

    mutating func begin(_ id: UUID, _ owner: String, _ now: Date) -> Code? {
        if let code = failure(id, .pending) { return code }
        guard let item = items[id] else { return .notFound }
        if let expires = item.expires, expires <= now { return .expired }
        guard free.contains(item), !isWaiting(item, now) else { return .notItsTurn }
        change(id) {
            ($0.state, $0.owner, $0.notBefore, $0.notBeforeSet) = (.inFlight, owner, nil, nil)
            $0.attempts += 1
        }
        return nil
    }

    mutating func retryLater(_ attempt: Attempt, _ at: Date?, _ now: Date) -> Code? {
        if let code = failure(attempt) { return code }
        change(attempt.mutation) {
            ($0.state, $0.owner, $0.notBefore, $0.notBeforeSet) = (.pending, nil, at, at.map { _ in now })
            $0.failure = .offline
        }
        return nil
    }

    mutating func answer(_ attempt: Attempt, _ text: String?) -> Code? {
        if let code = failure(attempt) { return code }
        guard let item = items[attempt.mutation] else { return .notFound }
        guard item.reserved != nil || text == nil else { return .invalid }
        change(item.id) { ($0.state, $0.owner, $0.isAnswered) = (.acknowledged, nil, true) }
        guard let id = item.reserved else { return nil }
        guard let text else {
            // From now on it is as if nobody had reserved it.
            if real[id] == nil {
                lose(id)
                change(item.id) { $0.reserved = nil }
            }
            return nil
        }
        real[id] = text
        for user in items.values where user.object == id.text && user.id != item.id {
            change(user.id) { $0.object = text }
        }
        return nil
    }

    mutating func settle(_ id: UUID) -> Code? {
        if let code = failure(id, .acknowledged) { return code }
        remove(id, .applied)
        return nil
    }

    mutating func setAside(_ id: UUID, _ state: MutationState, _ reason: MutationFailure.Class) -> Code? {
        if let code = failure(id, state) { return code }
        change(id) { ($0.state, $0.owner, $0.failure) = (.deadLetter, nil, reason) }
        return nil
    }

    mutating func edit(_ id: UUID, _ object: String) -> Code? {
        if let code = failure(id, .deadLetter) { return code }
        guard let item = items[id] else { return .notFound }
        guard let (text, maker) = meaning(of: object, own: item.reserved) else { return .unknownTemporaryID }
        if let maker, let other = items[maker], other.sequence >= item.sequence { return .invalid }
        change(id) {
            $0.object = text
            if let maker { $0.dependencies.insert(maker) }
        }
        return nil
    }

    mutating func replay(_ id: UUID, _ expires: Date?, _ now: Date) -> Code? {
        if let code = failure(id, .deadLetter) { return code }
        guard let item = items[id], meaning(of: item.object, own: item.reserved) != nil else {
            return .unknownTemporaryID
        }
        change(id) {
            let old = $0.expires.flatMap { now < $0 ? $0 : nil }
            ($0.state, $0.notBefore, $0.notBeforeSet, $0.expires) = (.pending, nil, nil, expires ?? old)
            $0.isAnswered = false
        }
        return nil
    }

    mutating func discard(_ id: UUID, settingAside: Bool) -> Code? {
        if let code = failure(id, .deadLetter) { return code }
        let dependents = items.values.filter { $0.dependencies.contains(id) && $0.state != .deadLetter }.map(\.id)
        if let token = items[id]?.reserved, real[token] == nil { lose(token) }
        remove(id, .discarded)
        if settingAside {
            for dependent in dependents {
                change(dependent) { ($0.state, $0.owner, $0.failure) = (.deadLetter, nil, .dependencyDiscarded) }
            }
        }
        return nil
    }

    mutating func discardAll() -> Code? {
        if items.values.contains(where: { $0.state == .inFlight }) { return .unsentWork }
        for item in sorted.reversed() where item.state == .pending || item.state == .deadLetter {
            if let token = item.reserved, real[token] == nil { lose(token) }
            remove(item.id, .discarded)
        }
        return nil
    }

    mutating func expire(_ now: Date) -> Set<UUID> {
        let ids = items.values.filter { $0.state == .pending && $0.expires.map { $0 <= now } ?? false }.map(\.id)
        for id in ids { _ = setAside(id, .pending, .expired) }
        return Set(ids)
    }

    mutating func adopt(_ attempt: Attempt, _ old: String, _ new: String) -> Code? {
        if let code = failure(attempt) { return code }
        guard items[attempt.mutation]?.owner == old else { return .wrongState }
        change(attempt.mutation) { $0.owner = new }
        return nil
    }

    mutating func prune() {
        outcomes = [:]
        real = real.filter { token, _ in reservers[token].map { items[$0] != nil } ?? false }
        reservers = reservers.filter { items[$0.value] != nil }
    }

    private mutating func lose(_ token: TemporaryID) {
        let maker = reservers.removeValue(forKey: token)
        for user in items.values where user.object == token.text && user.id != maker && user.state != .deadLetter {
            change(user.id) { ($0.state, $0.owner, $0.failure) = (.deadLetter, nil, .temporaryIDLost) }
        }
    }

    private mutating func remove(_ id: UUID, _ kind: Outcome.Kind) {
        items[id] = nil
        outcomes[id] = kind
        for other in items.keys { change(other) { $0.dependencies.remove(id) } }
    }

    private mutating func change(_ id: UUID, _ body: (inout Item) -> Void) {
        guard var item = items[id] else { return }
        body(&item)
        items[id] = item
    }
}
