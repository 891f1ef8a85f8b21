extension LarderError.Code {
    /// No user is signed in, and none has signed in by the deadline; the message has the state and its reason.
    public static let notSignedIn = LarderError.Code(rawValue: "larder.notSignedIn")
    /// The program has ended the wait for a sign-in.
    public static let waitReleased = LarderError.Code(rawValue: "larder.waitReleased")
    /// The call does not fit the session's state, such as becoming a guest while a user is signed in.
    public static let sessionState = LarderError.Code(rawValue: "larder.sessionState")
    /// There is no identity provider, and one was needed.
    public static let noIdentityProvider = LarderError.Code(rawValue: "larder.noIdentityProvider")
    /// The environment has no user pool, and its tokens were asked for.
    public static let noUserPool = LarderError.Code(rawValue: "larder.noUserPool")
    /// The environment has no identity pool, or there is no identity provider, and its credentials were asked for.
    public static let noIdentityPool = LarderError.Code(rawValue: "larder.noIdentityPool")
    /// A user is signed in, but not to the user pool: there are no tokens of it.
    public static let notInUserPool = LarderError.Code(rawValue: "larder.notInUserPool")
}

extension LarderError {
    static func notSignedIn(_ standing: SessionStanding) -> LarderError {
        LarderError(.notSignedIn, "No user has signed in by the deadline; the session is \(standing). Sign in")
    }

    /// The same, where nothing was waited for.
    static func notSignedInNow(_ standing: SessionStanding) -> LarderError {
        LarderError(.notSignedIn, "No user is signed in; the session is \(standing). Sign in")
    }
}
