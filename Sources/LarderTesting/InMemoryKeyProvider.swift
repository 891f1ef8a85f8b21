public import Larder
import Synchronization

/// Keys in memory, for the tests of programs: it can be locked, slow, or never answer.
public final class InMemoryKeyProvider: KeyProvider {
    /// How it answers.
    public enum Behaviour: Sendable, Hashable {
        /// At once.
        case ready
        /// That it is locked.
        case locked
        /// After some time.
        case slow(Duration)
        /// Never, even if it is cancelled, until it behaves otherwise.
        case hanging
    }

    private let state: Mutex<(keys: MasterKeys?, behaviour: Behaviour, reads: Int)>

    /// - Parameters:
    ///   - keys: The keys at first; nil where the first is made when it is needed.
    ///   - behaviour: How the provider answers at first.
    public init(_ keys: MasterKeys? = nil, behaviour: Behaviour = .ready) {
        state = Mutex((keys, behaviour, 0))
    }

    /// How it answers from now on.
    public var behaviour: Behaviour {
        get { state.withLock { $0.behaviour } }
        set { state.withLock { $0.behaviour = newValue } }
    }

    /// How often its keys were asked for.
    package var reads: Int { state.withLock { $0.reads } }

    /// Says that it is in memory.
    public var description: String { "the keys in memory" }

    /// - Throws: `.missing`, `.locked`.
    public func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
        state.withLock { $0.reads += 1 }
        try await behave()
        guard let keys = state.withLock({ $0.keys }) else { throw KeyError(.missing, "There is no key in memory") }
        return keys
    }

    /// - Throws: `.locked`.
    public func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        try await behave()
        return state.withLock { state in
            let keys = state.keys ?? MasterKeys(current: MasterKey())
            state.keys = keys
            return keys
        }
    }

    /// - Throws: `.missing`, `.locked`.
    public func addKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        try await change { $0.adding() }
    }

    /// - Throws: `.missing`, `.locked`.
    public func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {
        _ = try await change { $0.dropping(ids) }
    }

    private func change(_ body: @Sendable (MasterKeys) -> MasterKeys) async throws(KeyError) -> MasterKeys {
        try await behave()
        let changed = state.withLock { state in
            state.keys = state.keys.map(body)
            return state.keys
        }
        guard let changed else { throw KeyError(.missing, "There is no key in memory") }
        return changed
    }

    private func behave() async throws(KeyError) {
        switch behaviour {
        case .ready: return
        case .locked: throw KeyError(.locked, "The keys in memory are locked; unlock them")
        case .slow(let time):
            guard (try? await Task.sleep(for: time)) != nil else {
                throw KeyError(.cancelled, "The task was cancelled")
            }
        case .hanging:
            let clock = SuspendingClock()
            while behaviour == .hanging {
                // In a task of its own, which is not cancelled with this one.
                await Task.detached { try? await clock.sleep(for: .milliseconds(5)) }.value
            }
        }
    }
}
