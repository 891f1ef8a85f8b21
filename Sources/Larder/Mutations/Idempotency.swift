/// How a server is told that a mutation is a repeat, so that it takes effect once.
public enum Idempotency: Sendable, Hashable {
    /// By a header with the mutation's idempotency key.
    case header(name: String)
    /// By a variable with the key, which the operation declares.
    case variable(name: String)
}
