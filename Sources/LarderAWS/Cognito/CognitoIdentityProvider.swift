public import AsyncHTTPClient
public import Larder
import LarderHTTP

/// An environment's user pool and identity pool, as a session wants them.
///
/// ```swift
/// let cognito = CognitoIdentityProvider(environment: environment)
/// options.identityProvider = { _ in cognito }
/// …
/// switch try await cognito.userPool?.signIn("ann", password: password) {
/// case .signedIn(let tokens): try await app.session.signIn(Credentials(userPool: tokens))
/// case .challenge(let challenge): ask(challenge)
/// case nil: break
/// }
/// ```
public struct CognitoIdentityProvider: IdentityProvider {
    /// Gives other providers' tokens for the identity pool, by the names of who gave them.
    public typealias LoginSource = @Sendable (_ time: Duration) async throws -> [String: String]

    /// Nil where the environment has none.
    public let userPool: CognitoUserPool?
    /// Nil where the environment has none.
    public let identityPool: CognitoIdentityPool?
    private let otherLogins: LoginSource?

    /// The pools of an environment.
    ///
    /// - Parameters:
    ///   - environment: The backend, with its name.
    ///   - client: Made with `HTTPTransport.clientConfiguration(for:)`, and shut down by the caller after the last use;
    ///     nil for one of the pools' own.
    ///   - userPool: How the user pool is asked.
    ///   - identityPool: How the identity pool is asked.
    ///   - otherLogins: Where users sign in by other providers than the user pool.
    public init(
        environment: BackendEnvironment, client: HTTPClient? = nil, userPool: CognitoUserPool.Options = .init(),
        identityPool: CognitoIdentityPool.Options = .init(), otherLogins: LoginSource? = nil
    ) {
        let held = CognitoService.held(client)
        self.userPool = environment.userPool.map {
            CognitoUserPool($0, clientSecret: environment.clientSecret, held, userPool)
        }
        self.identityPool = environment.identityPool.map {
            CognitoIdentityPool($0, held, identityPool)
        }
        self.otherLogins = otherLogins
    }

    /// Which pools there are.
    public var parts: Set<Credentials.Part> {
        var parts: Set<Credentials.Part> = []
        if userPool != nil { parts.insert(.userPool) }
        if identityPool != nil { parts.insert(.cloud) }
        return parts
    }

    /// Asks the pool of the part.
    public func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        let deadline = SuspendingClock.now + time
        switch part {
        case .userPool:
            guard let userPool, let tokens = credentials.userPool else {
                throw IdentityError(.unusable, "There is no user pool, or no tokens of it.")
            }
            do throws(CognitoError) {
                return Credentials(userPool: try await userPool.refresh(tokens, within: .until(deadline)))
            } catch {
                throw error.identityError(refusal: .userPoolRefused)
            }
        case .cloud:
            return Credentials(cloud: try await cloud(for: credentials, deadline))
        }
    }

    /// Revokes the refresh token.
    public func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {
        let deadline = SuspendingClock.now + time
        guard let userPool, let tokens = credentials.userPool else { return }
        do throws(CognitoError) { try await userPool.revoke(tokens, within: .until(deadline)) } catch {
            throw error.identityError(refusal: .userPoolRefused)
        }
    }

    /// The identity pool's for guests; nil where there is no identity pool, or it has none for guests.
    public func guestCredentials(within time: Duration) async throws(IdentityError) -> Credentials? {
        let deadline = SuspendingClock.now + time
        guard let identityPool else { return nil }
        do throws(CognitoError) {
            return Credentials(
                cloud: try await identityPool.credentials(identityID: nil, logins: [:], within: .until(deadline)))
        } catch {
            // The message alone says so.
            if error.code == .federatedRefused, error.message.lowercased().contains("unauthenticated access") {
                return nil
            }
            throw error.identityError(refusal: .federatedRefused)
        }
    }

    private func cloud(
        for credentials: Credentials, _ deadline: SuspendingClock.Instant
    ) async throws(IdentityError) -> Credentials.CloudCredentials {
        guard let identityPool else { throw IdentityError(.unusable, "There is no identity pool.") }
        var logins: [String: String] = [:]
        if let otherLogins {
            do { logins = try await otherLogins(.until(deadline)) } catch {
                throw IdentityError(.unreachable, "The tokens of other providers could not be had.", cause: error)
            }
        }
        if let tokens = credentials.userPool, let pool = userPool?.pool {
            let domain = pool.region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
            logins["cognito-idp.\(pool.region).\(domain)/\(pool.id)"] = tokens.idToken
        }
        do throws(CognitoError) {
            return try await identityPool.credentials(
                identityID: credentials.cloud?.identityID, logins: logins, within: .until(deadline))
        } catch {
            throw error.identityError(refusal: .federatedRefused)
        }
    }
}
