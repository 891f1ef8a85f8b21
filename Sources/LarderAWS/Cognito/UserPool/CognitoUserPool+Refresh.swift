import Crypto
public import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CognitoUserPool {
    /// New tokens for a refresh token. Where the pool rotates it, the answer has the next one, and the old one works
    /// for the pool's grace period at most: store the answer before it is used.
    ///
    /// - Throws: `.signInAgain`, `.wrongCredentials`, `.userNotFound` and the like where the pool accepts the refresh
    ///   token no more; `.foreignToken`; `.unreachable` and the like where it has not decided.
    public func refresh(
        _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) -> Credentials.UserPoolTokens {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        guard let refreshToken = tokens.refreshToken else {
            throw CognitoError(.signInAgain, "There is no refresh token; sign in again.")
        }
        if let pages = options.refreshesOn {
            let given = try await service.tokens(
                at: try pages.url("oauth2/token"),
                [("grant_type", "refresh_token"), ("client_id", pool.clientID), ("refresh_token", refreshToken)],
                authorization: pageAuthorization(tokens), deadline: deadline)
            return try requireSameUser(try self.tokens(given, after: tokens), as: tokens)
        }
        let answer: CognitoAnswer
        if options.refreshesByFlow {
            var parameters = ["REFRESH_TOKEN": refreshToken]
            if let device = tokens.deviceKey { parameters["DEVICE_KEY"] = device }
            // The hash is of the name by which the user is known to the pool.
            let claims = JSONWebToken(tokens.accessToken)?.claims
            if let user = claims?.username ?? claims?.sub { parameters["SECRET_HASH"] = secretHash(of: user, tokens) }
            answer = try await service.call(
                "InitiateAuth",
                [
                    "AuthFlow": "REFRESH_TOKEN_AUTH", "ClientId": .text(pool.clientID),
                    "AuthParameters": .texts(parameters),
                ], deadline: deadline)
        } else {
            var members = secretMembers(tokens)
            members["RefreshToken"] = .text(refreshToken)
            if let device = tokens.deviceKey { members["DeviceKey"] = .text(device) }
            answer = try await service.call("GetTokensFromRefreshToken", members, deadline: deadline)
        }
        return try requireSameUser(try self.tokens(answer.AuthenticationResult, after: tokens), as: tokens)
    }

    /// Tokens of another user would let this one's queue be sent in the other's name.
    private func requireSameUser(
        _ new: Credentials.UserPoolTokens, as tokens: Credentials.UserPoolTokens
    ) throws(CognitoError) -> Credentials.UserPoolTokens {
        if let old = tokens.subject, old != new.subject {
            throw CognitoError(.foreignToken, "Cognito gave tokens of another user; they were not kept.")
        }
        return new
    }

    /// Makes the refresh token, and the access tokens that came of it, worth nothing.
    public func revoke(
        _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        guard let refreshToken = tokens.refreshToken else { return }
        if let pages = options.refreshesOn {
            return try await service.revoke(
                at: try pages.url("oauth2/revoke"), [("token", refreshToken), ("client_id", pool.clientID)],
                authorization: pageAuthorization(tokens), deadline: deadline)
        }
        var members = secretMembers(tokens)
        members["Token"] = .text(refreshToken)
        _ = try await service.call("RevokeToken", members, deadline: deadline)
    }

    /// Signs the user out on all devices.
    public func signOutEverywhere(
        _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call("GlobalSignOut", ["AccessToken": .text(tokens.accessToken)], deadline: deadline)
    }

    /// The client's id, and its secret where it has one: some operations take it as it is.
    private func secretMembers(_ tokens: Credentials.UserPoolTokens) -> [String: CognitoValue] {
        var members: [String: CognitoValue] = ["ClientId": .text(pool.clientID)]
        if let clientSecret = clientSecret ?? tokens.clientSecret { members["ClientSecret"] = .text(clientSecret) }
        return members
    }

    /// Proves that the program knows its client's secret; nil where it has none.
    func secretHash(of user: String, _ tokens: Credentials.UserPoolTokens? = nil) -> String? {
        (clientSecret ?? tokens?.clientSecret).map { secret in
            let key = SymmetricKey(data: Data(secret.utf8))
            return Data(HMAC<SHA256>.authenticationCode(for: Data((user + pool.clientID).utf8), using: key))
                .base64EncodedString()
        }
    }
}
