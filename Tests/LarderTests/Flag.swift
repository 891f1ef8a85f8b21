import Synchronization

/// A truth that tests and transports share.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
    /// Waits until it is set, for a minute at most.
    func wait() async {
        for _ in 0..<30_000 where !isSet { try? await Task.sleep(for: .milliseconds(2)) }
    }

    func set(_ isSet: Bool = true) { value.store(isSet, ordering: .sequentiallyConsistent) }
}
