/// What a runner is doing.
public enum RunnerState: Sendable, Hashable {
    /// It has not begun, or has ended.
    case stopped
    /// Another runner of the partition works.
    case standingBy
    case running
    /// The server does not know the user, or the storage does not take the credentials; the runner's `resume` goes on.
    case waitingForSignIn
    /// There is no network.
    case offline
}
