import LarderFiles
import LarderGraphQL
import LarderLMDB

/// How far a synchronization has come. It is stored in the commit of the records that came with it.
///
/// | table `positions` | key | value |
/// | --- | --- | --- |
/// | position | the synchronization's key | the position as JSON, see `SealedText` |
/// | marks | the key, `/`, the page's number in 8 hexadecimal digits | the cache keys that the page had, see `SyncMark` |
/// | subscription | `subscription:` and its key | up to when everything came, see `SubscriptionPosition` |
package struct SyncPosition: Sendable, Hashable {
    /// A walk through pages that has not reached its end.
    package struct Walk: Sendable, Hashable {
        /// After which the changes are asked for; nil for a walk through everything.
        package var since: Int64?
        /// What the server said on the first page.
        package var startedAt: Int64
        /// Of the next page.
        package var token: String
        package var pageCount: Int

        package init(since: Int64?, startedAt: Int64, token: String, pageCount: Int) {
            (self.since, self.startedAt, self.token, self.pageCount) = (since, startedAt, token, pageCount)
        }
    }

    /// The removal of what a walk through everything did not have, which has not reached its end.
    package struct Sweep: Sendable, Hashable {
        /// What the server changed at this time or later may not have been in the walk.
        package var changedBefore: Int64
        /// The stored key that was looked at last; empty where none was.
        package var after: [UInt8]

        package init(changedBefore: Int64, after: [UInt8] = []) {
            (self.changedBefore, self.after) = (changedBefore, after)
        }
    }

    /// What is synchronized, for people.
    package var name: String
    /// The types of the objects; their objects stay when garbage is collected.
    package var types: [String]
    /// Up to when everything came, in milliseconds since 1970 by the server's clock; nil before the first whole walk.
    package var startedAt: Int64?
    package var walk: Walk?
    package var sweep: Sweep?
    /// Which server was asked; nil where its transport does not say it.
    package var server: String?
    /// When a page came last, in milliseconds since 1970 by this device's clock; nil where that was not noted.
    package var lastUsed: Int64?

    /// The times that a server may tell, in milliseconds since 1970: sums and differences of them are numbers too.
    package static let times: ClosedRange<Int64> = 0...(1 << 53)

    package init(name: String, types: [String], startedAt: Int64? = nil, walk: Walk? = nil) {
        (self.name, self.types, self.startedAt, self.walk) = (name, types, startedAt, walk)
    }
}

/// A page of a synchronization, and what is known once it is stored.
package struct SyncPage: Sendable {
    /// Of the synchronization.
    package let key: String
    /// From this page on.
    package let position: SyncPosition
    /// As it must be stored by now; nil where none is.
    package let after: SyncPosition?
    /// Counted from 0.
    package let number: Int
    /// The cache keys of the page's objects; nil in a walk through changes, and where the query is filtered: neither
    /// leads to a sweep.
    package let mark: SyncMark?

    package init(key: String, position: SyncPosition, after: SyncPosition?, number: Int, mark: SyncMark?) {
        (self.key, self.position, self.after, self.number, self.mark) = (key, position, after, number, mark)
    }
}

extension SyncPosition {
    init?(_ json: [UInt8]) {
        guard case .object(let members)? = try? Value(json: json), case .string(let name)? = members["name"],
            case .list(let types)? = members["types"]
        else { return nil }
        self.init(name: name, types: types.compactMap { if case .string(let type) = $0 { type } else { nil } })
        if case .int(let time)? = members["startedAt"], Self.times.contains(time) { startedAt = time }
        if case .int(let time)? = members["lastUsed"], Self.times.contains(time) { lastUsed = time }
        if case .string(let server)? = members["server"] { self.server = server }
        if case .object(let sweep)? = members["sweep"] {
            guard case .int(let time)? = sweep["changedBefore"], case .string(let text)? = sweep["after"],
                let after = bytes(hexadecimal: text)
            else { return nil }
            self.sweep = Sweep(changedBefore: time, after: after)
        }
        guard case .object(let walk)? = members["walk"] else { return }
        guard case .int(let time)? = walk["startedAt"], Self.times.contains(time),
            case .string(let token)? = walk["token"], case .int(let count)? = walk["pageCount"]
        else { return nil }
        var since: Int64?
        if case .int(let time)? = walk["since"] { since = time }
        self.walk = Walk(since: since, startedAt: time, token: token, pageCount: Int(clamping: count))
    }

    var json: [UInt8] {
        var members: [String: Value] = ["name": .string(name), "types": .list(types.map(Value.string))]
        members["startedAt"] = startedAt.map(Value.int)
        members["lastUsed"] = lastUsed.map(Value.int)
        members["server"] = server.map(Value.string)
        if let sweep {
            members["sweep"] = .object([
                "changedBefore": .int(sweep.changedBefore), "after": .string(hexadecimal(sweep.after)),
            ])
        }
        if let walk {
            var steps: [String: Value] = [
                "startedAt": .int(walk.startedAt), "token": .string(walk.token),
                "pageCount": .int(Int64(walk.pageCount)),
            ]
            steps["since"] = walk.since.map(Value.int)
            members["walk"] = .object(steps)
        }
        return Value.object(members).json
    }
}

extension RecordCache {
    /// How far a synchronization has come; nil where it never stored a page.
    package func position(of key: String) throws(RecordError) -> SyncPosition? {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try generation.tables.position(key, transaction)
            }
        }
    }

    /// All positions, by the keys of their synchronizations.
    package func positions() throws(RecordError) -> [String: SyncPosition] {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try generation.tables.allPositions(transaction)
            }
        }
    }

    /// Stores pages of a synchronization in their order, each together with its position, in one commit. The pages' own
    /// lists are not stored.
    ///
    /// - Returns: For each, in order, what came of it: `.busy` where the stored position is another than the one from which
    ///   the page was asked for, as it is after a page that could not be stored.
    /// - Throws: What kept all of them from being tried.
    @discardableResult
    package func write(
        _ pages: [(parsed: ParsedResponse, operation: BoundOperation, end: SyncPage)],
        deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> [Result<Commit, RecordError>] {
        guard !pages.isEmpty else { return [] }
        return try await writer.write(
            pages.map { [.synchronize($0.parsed, of: $0.operation, $0.end)] },
            deadline: deadline ?? .now + options.lockTimeout)
    }

    /// Gives up a walk, so that the next one begins with its first page.
    package func forgetWalk(of key: String) async throws(RecordError) {
        _ = try await write([.forgetWalk(key)], deadline: nil)
    }

    /// Makes all synchronizations begin with everything: a change is missing from what the server tells of changes.
    package func forgetPositions() async throws(RecordError) {
        _ = try await write([.forgetPositions], deadline: nil)
    }
}
