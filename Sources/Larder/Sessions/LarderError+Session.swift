extension LarderError.Code {
    /// No user is signed in, and none has signed in by the deadline; the message has the state and its reason.
    public static let notSignedIn = LarderError.Code(rawValue: "larder.notSignedIn")
    /// The program has ended the wait for a sign-in.
    public static let waitReleased = LarderError.Code(rawValue: "larder.waitReleased")
    /// The call does not fit the session's state, such as becoming a guest while a user is signed in.
    public static let sessionState = LarderError.Code(rawValue: "larder.sessionState")
    /// There is no identity provider, and one was needed.
    public static let noIdentityProvider = LarderError.Code(rawValue: "larder.noIdentityProvider")
}

extension LarderError {
    static func notSignedIn(_ standing: SessionStanding) -> LarderError {
        LarderError(.notSignedIn, "nobody has signed in by the deadline; the session is \(standing). Sign in")
    }
}
