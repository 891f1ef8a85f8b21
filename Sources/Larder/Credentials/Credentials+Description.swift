import Foundation

/// What is printed of something that holds secrets, by whatever way: `print`, `dump`, a debugger, a logger, a mirror.
protocol Discreet: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Discreet {
    /// The same as `description`.
    public var debugDescription: String { description }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension Credentials: Discreet {
    /// What there is, and until when.
    public var description: String {
        let parts = [userPool?.description, cloud?.description].compactMap(\.self)
        return parts.isEmpty ? "no credentials" : parts.joined(separator: ", ")
    }
}

extension Credentials.UserPoolTokens: Discreet {
    /// What there is, and until when.
    public var description: String {
        "user pool tokens \(refreshToken == nil ? "without" : "with") a refresh token, \(until(expires))"
    }
}

extension Credentials.CloudCredentials: Discreet {
    /// What there is, and until when.
    public var description: String {
        "cloud credentials\(identityID.map { " of \($0)" } ?? ""), \(until(expires))"
    }
}

private func until(_ expires: Date?) -> String {
    expires.map { "until \($0.ISO8601Format())" } ?? "without an end"
}
