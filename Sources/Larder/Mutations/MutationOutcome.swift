public import LarderGraphQL
public import LarderRecords

/// How a queued mutation ended.
public enum MutationOutcome: Sendable {
    /// The server carried it out: the data that it answered with, and the errors of fields beside that, where the
    /// mutation took effect in part. The answer is in the cache. Data of more than 64 KiB are only there, null here.
    case applied(Value, errors: [GraphQLError])
    /// It waits among the dead letters, with the reason, until the user or the program replays or discards it.
    case setAside(MutationStatus.Failure?)
    /// The user or the program gave it up.
    case discarded(MutationStatus.Failure?)

    /// Why it was set aside or given up; nil for one that was applied.
    public var failure: MutationStatus.Failure? {
        switch self {
        case .applied: nil
        case .setAside(let failure), .discarded(let failure): failure
        }
    }

    /// Whether the server carried it out.
    public var isApplied: Bool {
        if case .applied = self { true } else { false }
    }
}
