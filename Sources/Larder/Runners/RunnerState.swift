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
    /// What answers at the endpoint is no GraphQL server, or the endpoint is none: a wrong address, a page to sign in
    /// to a network with. The runner asks again after pauses, and sends nothing until a GraphQL server answers.
    case unusableServer
}
