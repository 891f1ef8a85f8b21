/// What one server says before it acts on a mutation, beyond what always proves that a mutation had no effect.
///
/// The statuses 401, 425 and 429 and a GraphQL request error prove it of every server. Everything else does not: a
/// proxy may send 503 after the server behind it has acted. A program that knows its own server, and every proxy before
/// it, declares here what else is a refusal; a mutation that is refused so waits and is sent again.
public struct ServerRefusals: Sendable, Hashable {
    /// HTTP statuses that say that the request was not taken up, such as 503.
    public var statuses: Set<Int>
    /// Kinds of errors (`extensions.code`, or AppSync's `errorType`) with which the field of a mutation ends before it
    /// has changed anything, such as `UNAUTHENTICATED`. They count where each field of the mutation ended with one.
    public var errorKinds: Set<String>

    /// None, unless given.
    public init(statuses: Set<Int> = [], errorKinds: Set<String> = []) {
        self.statuses = statuses
        self.errorKinds = errorKinds
    }
}
