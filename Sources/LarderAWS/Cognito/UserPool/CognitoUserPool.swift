public import AsyncHTTPClient
public import Larder
import LarderFiles
import LarderHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A user pool of Cognito: signs users in, refreshes and revokes their tokens, and keeps their accounts.
///
/// - **The password does not leave this machine**, unless the flow is `.password`: the Secure Remote Password protocol
///   proves that the user knows it.
/// - **A sign-in is a chain of steps**: each answer is tokens, or a ``SignInChallenge`` that the user has to answer.
/// - **Tokens are looked at before they are given**: those of another pool or client, and what is no token, are
///   refused.
/// - **Every call has a deadline**, and ends by a ``CognitoError``. No message has a secret.
public final class CognitoUserPool: Sendable {
    /// How a pool is reached.
    public struct Options: Sendable {
        /// Another place that speaks as Cognito does, such as a local stack. Nil: Amazon's in the pool's region.
        public var endpoint: URL?
        /// How long a call may take where the caller does not say it.
        public var timeout = Duration.seconds(30)
        /// Whether tokens are refreshed by `REFRESH_TOKEN_AUTH`, which pools that rotate refresh tokens refuse, instead
        /// of `GetTokensFromRefreshToken`, which some local stacks do not have.
        public var refreshesByFlow = false
        /// The pool's own pages, where tokens are to be refreshed and revoked there: for a client that is allowed the
        /// pages alone. Nil: by the pool's operations, which take tokens of the pages as well.
        public var refreshesOn: BackendEnvironment.HostedSignIn?

        /// Reads the time of day, which proofs of a password hold.
        package var wallClock: @Sendable () -> Date = { Date() }
        /// Gives random bytes.
        package var random: @Sendable (Int) -> [UInt8] = { count in
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        }

        /// Amazon's Cognito.
        public init() {}
    }

    /// The pool and the program's registration in it.
    package let pool: BackendEnvironment.UserPool
    /// How it is reached.
    package let options: Options

    let clientSecret: String?
    let service: CognitoService
    /// The groups of devices that the pool has named and the program may have it remember, by the devices' keys.
    let newDevices = Locked<[String: String]>([:])

    /// A pool.
    ///
    /// - Parameters:
    ///   - pool: The pool, as the environment names it.
    ///   - clientSecret: Where the program's registration has one. Tokens keep it, and are refreshed and revoked with
    ///     it by a pool that is given none.
    ///   - client: Made with `HTTPTransport.clientConfiguration(for:)`, and shut down by the caller after the last use;
    ///     nil for one of the pool's own.
    ///   - options: What is different from the defaults.
    public convenience init(
        _ pool: BackendEnvironment.UserPool, clientSecret: String? = nil, client: HTTPClient? = nil,
        options: Options = Options()
    ) {
        self.init(pool, clientSecret: clientSecret, CognitoService.held(client), options)
    }

    init(_ pool: BackendEnvironment.UserPool, clientSecret: String?, _ held: HeldClient, _ options: Options) {
        self.pool = pool
        self.options = options
        self.clientSecret = clientSecret
        service = CognitoService(
            .userPools, region: pool.region, endpoint: options.endpoint, held, wallClock: options.wallClock)
    }

    /// The pool's name: its id without the region.
    var poolName: String { pool.id.split(separator: "_", maxSplits: 1).last.map(String.init) ?? pool.id }

    /// What an operation takes of the client: its id and, where there is a secret, a proof of it for a user.
    func clientMembers(for user: String? = nil) -> [String: CognitoValue] {
        var members: [String: CognitoValue] = ["ClientId": .text(pool.clientID)]
        if let user, let hash = secretHash(of: user) { members["SecretHash"] = .text(hash) }
        return members
    }

    /// Checks tokens, and gives them with their end by this machine's clock.
    func tokens(
        _ answer: CognitoAnswer.Tokens?, after old: Credentials.UserPoolTokens? = nil
    ) throws(CognitoError) -> Credentials.UserPoolTokens {
        guard let answer, let idText = answer.IdToken, let accessText = answer.AccessToken else {
            throw CognitoError(.unusableAnswer, "Cognito has signed the user in and given no tokens.")
        }
        guard let id = JSONWebToken(idText), let access = JSONWebToken(accessText) else {
            throw CognitoError(.foreignToken, "Cognito gave tokens that are no JSON Web Tokens; they were not kept.")
        }
        func belongs(_ token: JSONWebToken, _ use: String, _ client: String?) -> Bool {
            token.claims.iss?.hasSuffix("/\(pool.id)") == true && token.claims.token_use == use
                && client == pool.clientID
        }
        guard belongs(id, "id", id.claims.aud), belongs(access, "access", access.claims.client_id),
            id.claims.sub == access.claims.sub
        else {
            throw CognitoError(
                .foreignToken, "Cognito gave tokens of another pool, client or user; they were not kept.")
        }
        let lifetime = [answer.ExpiresIn, id.lifetime, access.lifetime].compactMap(\.self).filter { $0 > 0 }.min()
        guard let lifetime, lifetime < 1e9 else {
            throw CognitoError(.unusableAnswer, "Cognito does not say how long its tokens are good.")
        }
        if let device = answer.NewDeviceMetadata, let key = device.DeviceKey, let group = device.DeviceGroupKey {
            newDevices.withLock { $0[key] = group }
        }
        return Credentials.UserPoolTokens(
            idToken: idText, accessToken: accessText, refreshToken: answer.RefreshToken ?? old?.refreshToken,
            deviceKey: answer.NewDeviceMetadata?.DeviceKey ?? old?.deviceKey,
            expires: options.wallClock().addingTimeInterval(lifetime), clientSecret: clientSecret ?? old?.clientSecret)
    }
}
