public import Foundation

/// What locates a backend: its API, the pool that signs users in, the bucket for files.
///
/// A store knows an environment by its name. What belongs to it is bound to its definition, by three fingerprints: a
/// user pool that is replaced makes its credentials worthless and leaves the cache as it is; a renamed bucket signs no
/// user out.
///
/// ```swift
/// let staging = BackendEnvironment(name: "staging", api: .init(url: url))
/// let app = try store.partition(of: staging, server: http)
/// ```
public struct BackendEnvironment: Sendable, Hashable {
    /// A GraphQL API.
    public struct API: Sendable, Hashable, Codable {
        /// Where requests are sent.
        public var url: URL
        /// The cloud's region, where it has one.
        public var region: String?

        /// An API at a place.
        public init(url: URL, region: String? = nil) {
            self.url = url
            self.region = region
        }
    }

    /// The pool that signs users in.
    public struct UserPool: Sendable, Hashable, Codable {
        /// The pool, such as `eu-west-1_AbCdEfGhI`.
        public var id: String
        /// The program's registration in the pool.
        public var clientID: String
        /// The cloud's region.
        public var region: String

        /// A pool and the program's registration in it.
        public init(id: String, clientID: String, region: String) {
            self.id = id
            self.clientID = clientID
            self.region = region
        }
    }

    /// The pool that gives users, and guests, the cloud's own credentials.
    public struct IdentityPool: Sendable, Hashable, Codable {
        /// The pool, such as `eu-west-1:00000000-0000-0000-0000-000000000000`.
        public var id: String
        /// The cloud's region.
        public var region: String
        /// The role that the pool gives guests, by its ARN, where a file names it. It is no part of what the environment
        /// is, and is not stored: the pool itself decides.
        public var guestRole: String?
        /// The role that the pool gives users; as `guestRole`.
        public var userRole: String?

        /// A pool.
        public init(id: String, region: String, guestRole: String? = nil, userRole: String? = nil) {
            self.id = id
            self.region = region
            self.guestRole = guestRole
            self.userRole = userRole
        }
    }

    /// The pages on which a user pool signs users in by itself, in a browser.
    public struct HostedSignIn: Sendable, Hashable, Codable {
        /// The host of the pages, such as `movies.auth.eu-west-1.amazoncognito.com`.
        public var domain: String
        /// What is asked for, such as `openid`.
        public var scopes: [String]
        /// Where the pages may lead when a user has signed in; the first is used unless the program says another.
        public var signInRedirects: [String]
        /// Where the pages may lead when a user has signed out.
        public var signOutRedirects: [String]

        /// Pages of a domain.
        public init(
            domain: String, scopes: [String] = ["openid"], signInRedirects: [String], signOutRedirects: [String] = []
        ) {
            self.domain = domain
            self.scopes = scopes
            self.signInRedirects = signInRedirects
            self.signOutRedirects = signOutRedirects
        }
    }

    /// What proves to AppSync who asks, by the names that its configuration files have for it.
    public enum Authorization: String, Sendable, Hashable, CaseIterable {
        /// A key of the program's.
        case apiKey = "API_KEY"
        /// Requests signed with the cloud's credentials.
        case iam = "AWS_IAM"
        /// A token of the user pool.
        case userPool = "AMAZON_COGNITO_USER_POOLS"
        /// A token of another identity provider, which speaks OpenID Connect.
        case openIDConnect = "OPENID_CONNECT"
        /// A token that a Lambda function judges.
        case lambda = "AWS_LAMBDA"
    }

    /// Where files are kept.
    public struct Bucket: Sendable, Hashable, Codable {
        /// The bucket's name.
        public var name: String
        /// The cloud's region.
        public var region: String

        /// A bucket.
        public init(name: String, region: String) {
            self.name = name
            self.region = region
        }
    }

    /// What an environment takes the place of.
    public enum Predecessor: Sendable, Hashable {
        /// The environment of this name: its partitions become this one's.
        case environment(String)
        /// The partition of a store whose program named no environment: it becomes this one's guest's.
        case unnamed
    }

    /// What people call it: letters, digits, `-`, `_` and `.`, of which the first is a letter or a digit; at most 64.
    public var name: String
    /// Where requests are sent.
    public var api: API
    /// The pool that signs users in, if any.
    public var userPool: UserPool?
    /// The pool's own pages, if it has any. They are no part of what the environment is, and are not stored.
    public var hostedSignIn: HostedSignIn?
    /// The pool that gives credentials for the cloud, if any.
    public var identityPool: IdentityPool?
    /// Where files are kept, if anywhere.
    public var bucket: Bucket?
    /// What the API asks of users who are not signed in. The key rotates: it is no part of what the environment is, and
    /// is neither stored nor printed.
    public var apiKey: String?
    /// What proves to the API who asks, unless a request says otherwise. It is no part of what the environment is, and
    /// is not stored.
    public var authorization: Authorization?
    /// The secret of the program's registration in the user pool, where it has one: no part of what the environment is,
    /// and neither stored nor printed.
    public var clientSecret: String?
    /// What this environment takes the place of, where it has moved or was renamed.
    public var predecessor: Predecessor?
    /// Whether destructive commands are refused unless its name is repeated.
    public var isProtected: Bool

    /// An environment of these parts; they are checked where it is used.
    public init(
        name: String, api: API, userPool: UserPool? = nil, identityPool: IdentityPool? = nil, bucket: Bucket? = nil,
        apiKey: String? = nil, authorization: Authorization? = nil, clientSecret: String? = nil,
        hostedSignIn: HostedSignIn? = nil,
        predecessor: Predecessor? = nil, isProtected: Bool = false
    ) {
        self.name = name
        self.api = api
        self.userPool = userPool
        self.identityPool = identityPool
        self.bucket = bucket
        self.apiKey = apiKey
        self.authorization = authorization
        self.clientSecret = clientSecret
        self.hostedSignIn = hostedSignIn
        self.predecessor = predecessor
        self.isProtected = isProtected
    }
}

extension BackendEnvironment: CustomStringConvertible {
    /// The name and the API's place.
    public var description: String { "\(name) (\(URLText.hidingUser(ofURL: api.url.absoluteString)))" }
}
