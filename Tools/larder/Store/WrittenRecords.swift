import LarderCommandLine
import LarderFiles
import LarderRecords
import Synchronization

/// What a verb wrote: the commits of this process, counted as they happen.
final class WrittenRecords: Sendable {
    private let commits = Mutex<[Commit]>([])

    init(in cache: RecordCache) {
        cache.observe { [self] commit in commits.withLock { $0.append(commit) } }
    }

    func tally(_ cache: RecordCache) throws -> ChangeTally {
        var total = ChangeTally()
        for commit in commits.withLock({ $0 }) { total += try cache.tally(commit) }
        return total
    }
}

/// What a writing verb says in the end.
struct Written {
    var records = ChangeTally()
    var bytesBefore: Int
    var bytesAfter: Int

    var json: JSONText {
        .object([
            (
                "records",
                .object([
                    ("created", .int(records.created)), ("changed", .int(records.changed)),
                    ("removed", .int(records.removed)),
                ])
            ),
            ("bytes", .object([("before", .int(bytesBefore)), ("after", .int(bytesAfter))])),
        ])
    }

    var text: String {
        "\(records.created.counted("record")) created, \(records.changed) changed, \(records.removed) removed; "
            + "the store has \(bytesAfter.counted("byte")) (\(bytesBefore) before)"
    }
}
