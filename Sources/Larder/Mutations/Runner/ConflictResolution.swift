public import LarderGraphQL
public import LarderRecords

/// A mutation that is asked about: of a resolver how a conflict ends, of a check whether it took effect.
public struct MutationInQuestion: Sendable {
    /// The mutation's id.
    public let id: MutationID
    /// The operation as it was queued. What was sent has the versions and the key in its variables as well.
    public let operation: GraphQLOperation
    /// By which the server would tell a repeat.
    public let idempotencyKey: String
    /// What the server said.
    public let serverErrors: [GraphQLError]

    /// What the server has of the object, where it says it with a conflict, as AppSync does: the fields that the
    /// mutation selects. The cache has it by now.
    public var serverItem: Value? {
        serverErrors.lazy.filter(\.isConflict).compactMap(\.data)
            .first { if case .object = $0 { true } else { false } }
    }
}

/// What becomes of a mutation that the server refuses because something else has changed meanwhile.
public enum ConflictResolution: Sendable {
    /// The server's state stays, and the runner gives the mutation up. Mutations that wait for it go on, unless they hold
    /// a temporary id of it.
    case keepServers
    /// It is sent again with these variables, and a new idempotency key.
    case retry(variables: [String: Value])
    /// The mutation waits for the user or the program to decide.
    case setAside
}

/// Whether a mutation took effect whose answer was lost.
public enum CheckedOutcome: Sendable {
    /// It did. `response` is the data that the server would have answered, where that is known.
    case tookEffect(response: Value?)
    /// It did not, and is sent again.
    case hadNoEffect
    /// The server does not tell; it is set aside.
    case unknown
}
