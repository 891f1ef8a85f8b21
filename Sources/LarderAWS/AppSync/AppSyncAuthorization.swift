public import Larder

/// What proves to AppSync who asks.
///
/// A proof is asked for when a request is sent. `refused` is nil then. Where the API refuses the proof itself (not what
/// it allows), it is asked for once more, with the one that was refused, so that another can be had.
public enum AppSyncAuthorization: Sendable {
    /// Gives a proof within a time: another one than was refused.
    public typealias Source<Proof: Sendable> =
        @Sendable (_ refused: Proof?, _ time: Duration) async throws -> Proof

    /// A key of the program's.
    case apiKey(String)
    /// Requests signed with the cloud's credentials (Signature Version 4) for a region.
    case iam(region: String, Source<Credentials.CloudCredentials>)
    /// A token of the API's user pool, sent as it is.
    case userPool(Source<String>)
    /// A token of another identity provider, which speaks OpenID Connect, sent as it is.
    case openIDConnect(Source<String>)
    /// A token that a Lambda function judges: at most 2,048 characters, which `send` requires and AppSync does.
    case lambda(Source<String>)

    /// Which of a user pool's tokens is sent.
    public enum UserPoolToken: Sendable, Hashable {
        /// Says what the user may do.
        case access
        /// Says who the user is; resolvers see all of its claims.
        case id
    }

    /// The tokens of a session, refreshed when they end or are refused. It never waits for a sign-in.
    ///
    /// - Parameter session: Asked for each request: a session is over when its partition is parked.
    public static func userPool(
        _ session: @autoclosure @escaping @Sendable () throws -> Session, token: UserPoolToken = .access
    ) -> AppSyncAuthorization {
        .userPool { refused, time in
            let tokens = try await session().userPoolTokens(
                within: time,
                refused: refused.map { .init(idToken: $0, accessToken: $0, expires: nil) })
            return token == .access ? tokens.accessToken : tokens.idToken
        }
    }

    /// The cloud's credentials of a session's user or guest, refreshed when they end or are refused. It never waits for
    /// a sign-in.
    public static func iam(
        region: String, _ session: @autoclosure @escaping @Sendable () throws -> Session
    ) -> AppSyncAuthorization {
        .iam(region: region) { refused, time in
            try await session().cloudCredentials(within: time, refused: refused)
        }
    }
}
