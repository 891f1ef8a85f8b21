/// How a mutation is sent.
public enum MutationDelivery: Sendable, Hashable {
    /// Now: it is never kept for later, and fails with an error when the time is over.
    case immediate(within: Duration)
}
