import LarderFiles

/// What a runner is doing.
public enum RunnerState: Sendable, Hashable {
    /// It has not begun, or has ended.
    case stopped
    /// Another runner of the partition works.
    case standingBy
    /// It works, or waits for work.
    case running
    /// The server does not know the user, or the storage does not take the credentials; `Partition.noteSignIn` has it go on.
    case waitingForSignIn
    /// There is no network.
    case offline
    /// The store is suspended.
    case suspended
    /// What answers at the endpoint is no GraphQL server, or the endpoint is none: a wrong address, a page to sign in
    /// to a network with. The runner asks again after pauses, and sends nothing until a GraphQL server answers.
    case unusableServer
}

/// What the runners of a partition are doing that run in this process.
final class RunnerStates: Sendable {
    private struct Runner {
        var kind: String
        var state: RunnerState
        var resume: @Sendable () -> Void
    }

    private let runners = Locked([ObjectIdentifier: Runner]())
    /// The kinds of which it was looked whether one runs.
    private let noticed = Locked(Set<String>())

    /// - Parameter kind: `RunnerLifecycle`'s lock suffix.
    /// - Returns: Whether it is another state than before.
    @discardableResult
    func note(_ state: RunnerState, of runner: RunnerLifecycle, _ kind: String) -> Bool {
        if state != .stopped { noticed.withLock { _ = $0.insert(kind) } }
        return runners.withLock { runners in
            let old = runners[ObjectIdentifier(runner)]?.state ?? .stopped
            runners[ObjectIdentifier(runner)] =
                state == .stopped
                ? nil : Runner(kind: kind, state: state, resume: { [weak runner] in runner?.resume() })
            return old != state
        }
    }

    /// Has each go on that waits for a sign-in.
    func resume() {
        for runner in runners.withLock({ Array($0.values) }) { runner.resume() }
    }

    /// Calls `notice` once, where none of a kind runs, and none ever has.
    func noticeMissing(_ kind: String, _ notice: () -> Void) {
        let isNews = noticed.withLock { $0.insert(kind).inserted }
        if isNews, state(of: kind) == .stopped { notice() }
    }

    /// The state of the one that works; `standingBy` where another process may have that, `stopped` where none runs.
    func state(of kind: String) -> RunnerState {
        let states = runners.withLock { $0.values.filter { $0.kind == kind }.map(\.state) }
        return states.first { $0 != .standingBy } ?? states.first ?? .stopped
    }
}
