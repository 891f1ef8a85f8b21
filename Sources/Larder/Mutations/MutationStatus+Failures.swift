import LarderOperations

extension MutationStatus.Failure.Kind {
    /// Nothing of it had left: there was no network, or no server.
    public static let offline = Self(.offline)
    /// The server asked to wait.
    public static let throttled = Self(.throttled)
    /// The server failed.
    public static let serverFault = Self(.serverFault)
    /// No user is signed in whom the server would know.
    public static let notSignedIn = Self(.notSignedIn)
    /// What answers is not the GraphQL server, or the endpoint is none.
    public static let unusableServer = Self(.unusableServer)
    /// Something else has changed meanwhile.
    public static let conflict = Self(.conflict)
    /// The server refused it.
    public static let rejected = Self(.rejected)
    /// It was sent, and its outcome is unknown.
    public static let outcomeUnknown = Self(.outcomeUnknown)
    /// Its time was over, and no attempt was under way.
    public static let expired = Self(.expired)
    /// What it depended on was discarded.
    public static let dependencyDiscarded = Self(.dependencyDiscarded)
    /// A transfer that it waits for has failed, or was cancelled.
    public static let transferFailed = Self(.transferFailed)
    /// Its row was damaged; what could not be read of it is lost.
    public static let damaged = Self(.damaged)
    /// It holds a temporary id for which there will be no real one.
    public static let temporaryIDLost = Self(.temporaryIDLost)
    /// A backup brought it back, and it may have been sent since the backup was made.
    public static let restored = Self(.restored)

    private init(_ kind: MutationFailure.Class) { self.init(rawValue: kind.rawValue) }
}
