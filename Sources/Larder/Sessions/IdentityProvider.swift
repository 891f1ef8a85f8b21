/// Signs users in, and gives new credentials for old ones.
///
/// The provider's calls run on threads of their own. A deadline that passes cancels the task of a refresh. Until it has
/// returned, no other task or process refreshes the same part of the same credentials, since a refresh token may work
/// only once.
public protocol IdentityProvider: Sendable {
    /// Which parts of credentials the provider can give; both, unless it says otherwise.
    var parts: Set<Credentials.Part> { get }

    /// Gets a part of the credentials anew, or for the first time. What the answer leaves out, such as the other part,
    /// or a refresh token that is not rotated, stays as it was. For a guest there are cloud credentials alone, with the
    /// identity id that is to be kept.
    ///
    /// The session stores the answer before it asks for the other part. It asks for cloud credentials only with tokens
    /// that are good.
    ///
    /// - Throws: `.unreachable` and the like where the server has not decided; `.userPoolRefused` or
    ///   `.federatedRefused` only where it has.
    func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials

    /// Tells the server that the credentials are not used any more.
    func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError)

    /// Credentials for a user who is not signed in; nil where there are none for guests.
    func guestCredentials(within time: Duration) async throws(IdentityError) -> Credentials?
}

extension IdentityProvider {
    /// Both.
    public var parts: Set<Credentials.Part> { Set(Credentials.Part.allCases) }

    /// None.
    public func guestCredentials(within time: Duration) async throws(IdentityError) -> Credentials? { nil }
}
