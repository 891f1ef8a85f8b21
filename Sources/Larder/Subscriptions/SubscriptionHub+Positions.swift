package import Foundation
import LarderRecords

/// Up to when everything has come over each subscription, which the cache remembers across restarts. A time that is too
/// early does no harm: the gap is shown longer than it was.
extension SubscriptionHub {
    /// Up to when everything had come over a subscription when it was heard of last, in this process or an earlier one.
    func lastComplete(_ entry: Entry) -> Date? {
        do throws(RecordError) {
            guard let position = try partition.core.cache.subscriptionPositions()[entry.positionKey] else { return nil }
            return min(Date(milliseconds: position.time), partition.core.now())
        } catch {
            warn(error)
            return nil
        }
    }

    /// Notes that everything has come over a subscription until its connection was heard of last, unless it has a gap.
    ///
    /// - Parameter seconds: Not where it was noted so short a time ago.
    func noteComplete(_ entry: Entry, atMostEach seconds: Double = 0) {
        guard entry.state.staleSince == nil, !partition.core.isParked else { return }
        guard let heard = line(of: entry)?.heard else { return }
        if seconds > 0, let last = entry.lastNoted, heard >= last, heard < last.addingTimeInterval(seconds) { return }
        entry.lastNoted = heard
        unnoted[entry.positionKey] = SubscriptionPosition(name: entry.name, time: heard.milliseconds)
        if noting == nil { noting = Task { await self.noteWaiting() } }
    }

    private func noteWaiting() async {
        defer { noting = nil }
        while !unnoted.isEmpty {
            // What came until then is in the cache before the cache says so.
            await storeAll()
            let positions = unnoted
            guard !positions.isEmpty else { return }
            unnoted = [:]
            do throws(RecordError) { try await partition.core.cache.note(positions) } catch { return warn(error) }
        }
    }

    private func warn(_ error: RecordError) {
        partition.core.logger.debug(
            "up to when a subscription is complete is not known, or not noted", metadata: ["error": "\(error)"])
    }
}

extension SubscriptionHub.Entry {
    /// The field that is subscribed to, with its type.
    fileprivate var name: String {
        let plan = operation.layout.plan
        let root = plan.selections[plan.root]
        let fields = root.types.first.map { plan.fields[plan.cases[$0.caseIndex].fields] } ?? []
        let field = fields.first { $0.content != .typename }
        return "\(root.staticTypeName).\(field?.name ?? "__typename")"
    }
}

/// A subscription, as the cache remembers it.
package struct SubscriptionStatus: Sendable, Hashable {
    /// The field, such as `Subscription.orderChanged`.
    package let name: String
    /// Up to when everything has come over it, by this device's clock. What the server has told since then may be
    /// missing.
    package let completeUntil: Date
}

extension Partition {
    /// Up to when everything has come over each subscription, in ascending order of their names. The cache forgets a
    /// subscription of which it has heard nothing for 90 days.
    ///
    /// - Throws: `.parked`, `records.…`.
    package func subscriptions() throws(LarderError) -> [SubscriptionStatus] {
        do throws(RecordError) {
            return try core.cache.subscriptionPositions().values.sorted { ($0.name, $0.time) < ($1.name, $1.time) }.map
            {
                SubscriptionStatus(name: $0.name, completeUntil: Date(milliseconds: $0.time))
            }
        } catch { throw LarderError.parking(error) }
    }
}

extension Date {
    fileprivate init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }

    /// Since 1970; within what the cache keeps.
    var milliseconds: Int64 {
        let milliseconds = timeIntervalSince1970 * 1_000
        return milliseconds.isFinite ? Int64(min(max(0, milliseconds), Double(SyncPosition.times.upperBound))) : 0
    }
}
