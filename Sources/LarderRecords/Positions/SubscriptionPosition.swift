import LarderGraphQL
import LarderLMDB

/// Up to when everything has come over a subscription. It is a row of the table `positions`, under `subscription:` and
/// the subscription's key.
package struct SubscriptionPosition: Sendable, Hashable {
    /// What is subscribed to, for people.
    package var name: String
    /// In milliseconds since 1970 by this device's clock.
    package var time: Int64

    package init(name: String, time: Int64) { (self.name, self.time) = (name, time) }

    static let prefix = "subscription:"
    /// After so many milliseconds without a word a subscription is forgotten.
    private static let longestSilence: Int64 = 90 * 86_400_000
    static func isForgotten(_ time: Int64, at now: Int64) -> Bool { time < now - longestSilence }

    init?(_ json: [UInt8]) {
        guard case .object(let members)? = try? Value(json: json), case .string(let name)? = members["name"],
            case .int(let time)? = members["time"], SyncPosition.times.contains(time)
        else { return nil }
        (self.name, self.time) = (name, time)
    }

    var json: [UInt8] { Value.object(["name": .string(name), "time": .int(time)]).json }
}

extension RecordCache {
    /// Up to when everything has come over subscriptions, by their keys.
    package func subscriptionPositions() throws(RecordError) -> [String: SubscriptionPosition] {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try generation.tables.subscriptionPositions(transaction)
            }
        }
    }

    /// Notes up to when everything has come over subscriptions. Forgets what was noted long before.
    package func note(_ positions: [String: SubscriptionPosition]) async throws(RecordError) {
        _ = try await write([.noteSubscriptions(positions)], deadline: nil)
    }
}

extension Tables {
    func subscriptionPositions(
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [String: SubscriptionPosition] {
        var found: [String: SubscriptionPosition] = [:]
        for (row, content) in try rows(beginningWith: SubscriptionPosition.prefix, transaction) {
            guard let position = SubscriptionPosition(content) else { throw RecordError.damagedPosition }
            let key = row.dropFirst(SubscriptionPosition.prefix.utf8.count)
            found[String(decoding: key, as: UTF8.self)] = position
        }
        return found
    }
}

extension RecordChanges {
    mutating func note(
        _ noted: [String: SubscriptionPosition], _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws {
        let now = noted.values.map(\.time).max() ?? 0
        for (key, position) in try generation.tables.subscriptionPositions(transaction)
        where SubscriptionPosition.isForgotten(position.time, at: now) {
            positions[Array((SubscriptionPosition.prefix + key).utf8)] = .some(nil)
        }
        for (key, position) in noted {
            positions[Array((SubscriptionPosition.prefix + key).utf8)] = position.json
        }
    }
}
