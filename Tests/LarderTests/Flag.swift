import Synchronization
import Testing

/// A truth that tests and transports share.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }

    /// Waits until it is set or the task is cancelled. Where neither comes within a minute, the test has an issue.
    func wait(sourceLocation: SourceLocation = #_sourceLocation) async {
        let deadline = SuspendingClock.now + .seconds(60)
        while !isSet, !Task.isCancelled {
            guard .now < deadline else {
                Issue.record("what was waited for did not come about", sourceLocation: sourceLocation)
                return
            }
            try? await Task.sleep(for: .milliseconds(2))
        }
    }

    func set(_ isSet: Bool = true) { value.store(isSet, ordering: .sequentiallyConsistent) }
}
