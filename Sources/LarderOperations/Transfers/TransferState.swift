/// Where a transfer stands.
///
/// | from | what happens | to |
/// | --- | --- | --- |
/// | - | `enqueue` | pending |
/// | pending | `begin`: a runner has it | running |
/// | running | `finish`: the object, or the file, is there | done |
/// | running | `retryLater`: it failed, and may go better | pending |
/// | running | `fail`: it failed, and will not go better on its own | failed |
/// | running | the runner died: `recover` | pending |
/// | pending | `expire` | failed |
/// | pending, running | `pause` | paused |
/// | paused | `resume` | pending |
/// | failed | `retry` | pending |
/// | pending, running, paused, failed | `cancel` | cancelling, or cancelled where nothing is to be cleared away |
/// | cancelling | `cleared`: the storage's parts, or the partial file, are gone | cancelled |
///
/// A call that finds another state than it expects throws `.wrongState` and changes nothing. Statements compare the
/// numbers, so that their order counts too: what is below `cancelling` is wanted, and what is from `done` on has ended.
package enum TransferState: Int, StoredCase {
    case pending = 0
    case running = 1
    case paused = 2
    case failed = 3
    case cancelling = 4
    case done = 5
    case cancelled = 6

    package static let subject = "A transfer's state"

    /// Whether nothing will happen to it any more unless a caller asks for it.
    package var isEnded: Bool { self == .failed || self == .done || self == .cancelled }

    /// The states of which nothing will come on its own: what waits for such a transfer cannot go on. A cancelled one
    /// stays so, a failed one until it is retried.
    static let hopeless: Set<TransferState> = [.failed, .cancelling, .cancelled]
    static let hopeful = Set(allCases).subtracting(hopeless)
}

extension TransferState: CustomStringConvertible {
    /// The name by which tools know it.
    package var description: String {
        switch self {
        case .pending: "pending"
        case .running: "running"
        case .paused: "paused"
        case .failed: "failed"
        case .cancelling: "cancelling"
        case .done: "done"
        case .cancelled: "cancelled"
        }
    }
}
