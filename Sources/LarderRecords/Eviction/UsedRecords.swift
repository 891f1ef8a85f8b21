import LarderFiles
import Synchronization

/// Which records were read lately, approximately: one answer in `share` is taken down. It is kept in memory alone, so
/// that reading writes nothing.
final class UsedRecords: Sendable {
    static let share: UInt32 = 4

    private struct Sets {
        var latest = RecordSet()
        var before = RecordSet()
    }

    private let count = Atomic<UInt32>(0)
    private let sets = Locked(Sets())

    @inline(__always)
    func note(_ answer: CacheAnswer) {
        guard count.wrappingAdd(1, ordering: .relaxed).newValue % Self.share == 0 else { return }
        note(visitsOf: answer)
    }

    private func note(visitsOf answer: CacheAnswer) {
        sets.withLock { sets in
            answer.response.buffer?.forEachVisit { visit in
                if RecordSet.holds(visit.record) { sets.latest.insert(visit.record) }
            }
        }
    }

    /// What was used since the last but one call of `forget`.
    func contains(_ id: RecordID) -> Bool {
        sets.withLock { $0.latest.contains(id) || $0.before.contains(id) }
    }

    /// Forgets what was used before the last call.
    func forget() {
        sets.withLock { sets in
            (sets.before, sets.latest) = (sets.latest, RecordSet())
        }
    }
}
