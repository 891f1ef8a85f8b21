/// Whether a user is signed in.
public enum SessionState: String, Sendable, Hashable, CaseIterable {
    /// It cannot be told now: the store cannot be read, or has a state that only a newer version of the library knows.
    case unknown
    /// A user who is not signed in, with the credentials that guests have.
    case guest
    /// A user is signed in.
    case signedIn
    /// No user is signed in: one has signed out, or none ever signed in.
    case signedOut
    /// A user was signed in, and the user pool has refused to go on. Their data and their queue are kept for them.
    case userPoolTokensInvalid
    /// The identity pool has refused to go on, where nothing else proves who the user is.
    case federatedTokensInvalid
}

/// What may happen to a session.
enum SessionEvent: String, Sendable, Hashable, CaseIterable {
    /// Credentials of a user were given.
    case signedIn
    /// Credentials of a guest were given.
    case becameGuest
    /// The server gave new credentials for old ones.
    case refreshed
    /// The server could not be asked.
    case unreachable
    /// The user pool refused.
    case userPoolRefused
    /// The identity pool refused.
    case federatedRefused
    /// Nothing is left of the credentials: all are in quarantine, or were removed.
    case credentialsLost
    /// The program has signed out.
    case signedOut
}

extension SessionState {
    /// The table of the article on sessions.
    ///
    /// - Returns: The next state; nil where the event is no event in this one, and nothing is to be stored: what
    ///   arrives late, above all.
    func after(_ event: SessionEvent) -> SessionState? {
        switch (self, event) {
        case (_, .unreachable): self
        case (_, .signedIn): .signedIn
        case (_, .signedOut): .signedOut
        case (.unknown, .becameGuest), (.guest, .becameGuest), (.signedOut, .becameGuest),
            (.federatedTokensInvalid, .becameGuest):
            .guest
        case (.guest, .refreshed), (.signedIn, .refreshed): self
        case (.signedIn, .userPoolRefused), (.federatedTokensInvalid, .userPoolRefused): .userPoolTokensInvalid
        case (.signedIn, .federatedRefused), (.guest, .federatedRefused): .federatedTokensInvalid
        case (.guest, .credentialsLost), (.signedIn, .credentialsLost), (.userPoolTokensInvalid, .credentialsLost),
            (.federatedTokensInvalid, .credentialsLost):
            .signedOut
        default: nil
        }
    }

    /// Whether there should be credentials that can be used.
    var hasCredentials: Bool { self == .signedIn || self == .guest }

    /// Whether a part of the credentials may be used, if it is there. What the identity pool refuses says nothing of a
    /// user's tokens.
    func allows(_ part: Credentials.Part) -> Bool {
        switch part {
        case .userPool: self == .signedIn || self == .federatedTokensInvalid
        case .cloud: hasCredentials
        }
    }
}
