public import AsyncHTTPClient
public import Larder
import LarderFiles
import LarderHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An identity pool of Cognito: gives guests, and users who are signed in anywhere, the cloud's credentials.
public final class CognitoIdentityPool: Sendable {
    /// How a pool is reached.
    public struct Options: Sendable {
        /// Another place that speaks as Cognito does, such as a local stack. Nil: Amazon's in the pool's region.
        public var endpoint: URL?
        /// How long a call may take where the caller does not say it.
        public var timeout = Duration.seconds(30)
        /// A role other than the pool's own, which its rules must allow.
        public var roleARN: String?

        /// Reads the time of day.
        package var wallClock: @Sendable () -> Date = { Date() }

        /// Amazon's Cognito.
        public init() {}
    }

    /// The pool.
    package let pool: BackendEnvironment.IdentityPool
    /// How it is reached.
    package let options: Options

    private let service: CognitoService
    /// A guest's, whose credentials could not be had: the next guest is this one. Another would be one more to the pool
    /// for each time that it fails.
    private let begunGuest = Locked<String?>(nil)

    /// A pool.
    ///
    /// - Parameters:
    ///   - pool: The pool, as the environment names it.
    ///   - client: As of ``CognitoUserPool``.
    ///   - options: What is different from the defaults.
    public convenience init(
        _ pool: BackendEnvironment.IdentityPool, client: HTTPClient? = nil, options: Options = Options()
    ) {
        self.init(pool, CognitoService.held(client), options)
    }

    init(_ pool: BackendEnvironment.IdentityPool, _ held: HeldClient, _ options: Options) {
        self.pool = pool
        self.options = options
        service = CognitoService(
            .identityPools, region: pool.region, endpoint: options.endpoint, held, wallClock: options.wallClock)
    }

    /// The cloud's credentials.
    ///
    /// - Parameters:
    ///   - identityID: Who it is to the pool; nil to be told. It stays the same, unless the pool knows it no more.
    ///   - logins: Tokens by the names of who gave them, at most 10: `cognito-idp.REGION.amazonaws.com/POOL` for a user
    ///     pool, `accounts.google.com`, and so on. None for a guest.
    ///   - time: How long the call may take.
    /// - Throws: `.federatedRefused` where the pool gives none; `.unreachable` and the like where it has not decided.
    public func credentials(
        identityID: String?, logins: [String: String], within time: Duration? = nil
    ) async throws(CognitoError) -> Credentials.CloudCredentials {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        do throws(CognitoError) {
            let known = identityID ?? (logins.isEmpty ? takeBegunGuest() : nil)
            if let known {
                do throws(CognitoError) { return try await credentials(of: known, logins, deadline) } catch {
                    // The identity was deleted.
                    guard error.serverCode == "ResourceNotFoundException" else {
                        if identityID == nil { begunGuest.withLock { $0 = known } }
                        throw error
                    }
                }
            }
            let id = try await identity(logins, deadline)
            do throws(CognitoError) { return try await credentials(of: id, logins, deadline) } catch {
                if logins.isEmpty, error.serverCode != "ResourceNotFoundException" { begunGuest.withLock { $0 = id } }
                throw error
            }
        } catch {
            var error = error
            // Of an identity pool, this is what it means whatever it says.
            if error.serverCode == "NotAuthorizedException" { error.code = .federatedRefused }
            throw error
        }
    }

    private func takeBegunGuest() -> String? {
        begunGuest.withLock { id in
            defer { id = nil }
            return id
        }
    }

    private func identity(
        _ logins: [String: String], _ deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> String {
        var members: [String: CognitoValue] = ["IdentityPoolId": .text(pool.id)]
        if !logins.isEmpty { members["Logins"] = .texts(logins) }
        guard let id = try await service.call("GetId", members, deadline: deadline).IdentityId, !id.isEmpty else {
            throw CognitoError(.unusableAnswer, "The identity pool gave no identity.")
        }
        return id
    }

    private func credentials(
        of id: String, _ logins: [String: String], _ deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> Credentials.CloudCredentials {
        var members: [String: CognitoValue] = ["IdentityId": .text(id)]
        if !logins.isEmpty { members["Logins"] = .texts(logins) }
        if let role = options.roleARN { members["CustomRoleArn"] = .text(role) }
        let answer = try await service.call("GetCredentialsForIdentity", members, deadline: deadline)
        guard let keys = answer.Credentials, let accessKeyID = keys.AccessKeyId, let secret = keys.SecretKey,
            !accessKeyID.isEmpty, !secret.isEmpty
        else { throw CognitoError(.unusableAnswer, "The identity pool gave no credentials.") }
        // The end is by the server's clock, and what a session keeps is by this machine's.
        let now = options.wallClock()
        let end = keys.Expiration.map { Date(timeIntervalSince1970: $0) }
        let lifetime = end.map { min(max($0.timeIntervalSince(answer.serverTime ?? now), 0), Self.longestLifetime) }
        return Credentials.CloudCredentials(
            identityID: answer.IdentityId ?? id, accessKeyID: accessKeyID, secretAccessKey: secret,
            sessionToken: keys.SessionToken, expires: lifetime.map { now.addingTimeInterval($0) })
    }

    /// In seconds: no role's session is longer.
    private static let longestLifetime: TimeInterval = 12 * 3_600
}
