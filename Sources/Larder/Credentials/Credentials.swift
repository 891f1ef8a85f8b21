public import Foundation

/// What proves that a user may use a backend. It never prints a secret.
public struct Credentials: Sendable, Hashable, Codable {
    /// A part of credentials. Each is given, ends and is refused by itself, and is stored and sealed by itself.
    public enum Part: String, Sendable, Hashable, CaseIterable {
        /// The tokens of a user pool.
        case userPool
        /// The keys of an identity pool.
        case cloud
    }

    /// What a user pool has given to a user who signed in.
    public struct UserPoolTokens: Sendable, Hashable, Codable {
        /// Says who the user is.
        public var idToken: String
        /// Says what the user may do.
        public var accessToken: String
        /// Gets new ones. Where the pool rotates it, each works once.
        public var refreshToken: String?
        /// The device that the pool remembers, without which it refuses a refresh there.
        public var deviceKey: String?
        /// When the id and access tokens end, by this machine's clock: when they arrived, and the lifetime that the
        /// server said. Nil: never.
        public var expires: Date?
        /// The secret of the program's registration with which the pool gave them, where it has one: without it the pool
        /// refuses a refresh. It is sealed with the tokens, and kept nowhere else.
        public var clientSecret: String?

        /// The user's id (`sub` of the id token), which the pool never gives to another user; nil where the token is no
        /// JSON Web Token that has one.
        public var subject: String? { JSONWebToken(idToken)?.claims.sub }

        /// Tokens of a user pool.
        public init(
            idToken: String, accessToken: String, refreshToken: String? = nil, deviceKey: String? = nil,
            expires: Date?, clientSecret: String? = nil
        ) {
            self.idToken = idToken
            self.accessToken = accessToken
            self.refreshToken = refreshToken
            self.deviceKey = deviceKey
            self.expires = expires
            self.clientSecret = clientSecret
        }
    }

    /// What an identity pool has given: keys by which requests to the cloud are signed.
    public struct CloudCredentials: Sendable, Hashable, Codable {
        /// Who it is to the cloud, such as `eu-west-1:00000000-0000-0000-0000-000000000000`; a guest has one too.
        public var identityID: String?
        /// Names the secret key; no secret.
        public var accessKeyID: String
        /// Signs requests.
        public var secretAccessKey: String
        /// Goes with each request, unless it is nil or empty: an access key that lasts has none.
        public var sessionToken: String?
        /// When they end, by this machine's clock. Nil: never.
        public var expires: Date?

        /// Keys of an identity pool.
        public init(
            identityID: String? = nil, accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil,
            expires: Date?
        ) {
            self.identityID = identityID
            self.accessKeyID = accessKeyID
            self.secretAccessKey = secretAccessKey
            self.sessionToken = sessionToken
            self.expires = expires
        }
    }

    /// Nil for a guest, and where there is no user pool.
    public var userPool: UserPoolTokens?
    /// Nil where there is no identity pool.
    public var cloud: CloudCredentials?

    /// Credentials of one kind or of both.
    public init(userPool: UserPoolTokens? = nil, cloud: CloudCredentials? = nil) {
        self.userPool = userPool
        self.cloud = cloud
    }

    /// Whether there are none of either kind.
    public var isEmpty: Bool { userPool == nil && cloud == nil }

    /// When the first of them ends; nil: never.
    public var expires: Date? { [userPool?.expires, cloud?.expires].compactMap(\.self).min() }

    /// Whether a part is good for some time still; false where it is absent.
    func has(_ part: Part, freshAt now: Date, margin: Duration) -> Bool {
        guard contains(part) else { return false }
        let expires =
            switch part {
            case .userPool: userPool?.expires
            case .cloud: cloud?.expires
            }
        return expires.map { $0.timeIntervalSince(now) > margin.seconds } ?? true
    }

    /// Copies no token: a thousand callers may ask at a time.
    func contains(_ part: Part) -> Bool {
        switch part {
        case .userPool: if case .some = userPool { true } else { false }
        case .cloud: if case .some = cloud { true } else { false }
        }
    }

    /// The parts that there are, in the order in which they are refreshed: cloud credentials are given for tokens.
    var present: [Part] { (userPool == nil ? [] : [.userPool]) + (cloud == nil ? [] : [.cloud]) }

    /// These, and what they leave out as it was: a server that does not rotate the refresh token does not repeat it.
    func completed(by old: Credentials) -> Credentials {
        var new = Credentials(userPool: userPool ?? old.userPool, cloud: cloud ?? old.cloud)
        if userPool?.refreshToken == nil { new.userPool?.refreshToken = old.userPool?.refreshToken }
        if userPool?.deviceKey == nil { new.userPool?.deviceKey = old.userPool?.deviceKey }
        if userPool?.clientSecret == nil { new.userPool?.clientSecret = old.userPool?.clientSecret }
        if cloud?.identityID == nil { new.cloud?.identityID = old.cloud?.identityID }
        return new
    }
}

/// Credentials behind a reference: many callers hold the same at a time, and each copies that alone.
final class HeldCredentials: Sendable {
    let value: Credentials

    init(_ value: Credentials) { self.value = value }
}
