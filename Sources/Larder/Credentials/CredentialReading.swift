/// What reading credentials has led to. That they cannot be had now never means that there are none.
package enum CredentialReading: Sendable, Hashable {
    /// They are there.
    case present(Credentials)
    /// There are none.
    case absent
    /// They are there, and cannot be opened now: the key is locked, slow, missing or unreadable. No user is signed out
    /// for that.
    case unavailable(KeyError)

    /// Equal where the credentials are equal, or the errors' codes.
    package static func == (one: CredentialReading, other: CredentialReading) -> Bool {
        switch (one, other) {
        case (.present(let one), .present(let other)): one == other
        case (.absent, .absent): true
        case (.unavailable(let one), .unavailable(let other)): one.code == other.code
        default: false
        }
    }

    /// Feeds the parts that are compared.
    package func hash(into hasher: inout Hasher) {
        switch self {
        case .present(let credentials): hasher.combine(credentials)
        case .absent: hasher.combine(0)
        case .unavailable(let error): hasher.combine(error.code)
        }
    }
}
