import Synchronization

/// A truth that tests and transports share.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }
    func set(_ isSet: Bool = true) { value.store(isSet, ordering: .sequentiallyConsistent) }
}
