public import Foundation

/// The tokens of a user who signed in by AWSMobileClient, or by Amplify's library for Swift, in an earlier version of the
/// program. `Session.adopt` takes them over.
public struct LegacyTokens: Sendable, Hashable {
    /// As they were found. They end when the tokens themselves say.
    public var tokens: Credentials.UserPoolTokens

    /// Tokens that the program has found by itself.
    public init(idToken: String, accessToken: String, refreshToken: String?, deviceKey: String? = nil) {
        let ends = [idToken, accessToken].compactMap { JSONWebToken($0)?.claims.exp }
        tokens = Credentials.UserPoolTokens(
            idToken: idToken, accessToken: accessToken, refreshToken: refreshToken, deviceKey: deviceKey,
            // Tokens that do not say it are refreshed before they are used.
            expires: Date(timeIntervalSince1970: ends.count == 2 ? ends.min() ?? 0 : 0))
    }

    /// From what AWSMobileClient has in the Keychain under the service `BUNDLE.AWSCognitoIdentityUserPool`.
    ///
    /// - Parameters:
    ///   - items: The data of the items by their accounts: `CLIENT.currentUser`, `CLIENT.USER.idToken` and the like.
    ///   - clientID: The app client of the user pool.
    /// - Returns: Nil where no user of the client is signed in there.
    public init?(mobileClient items: [String: Data], clientID: String) {
        func text(_ account: String) -> String? { items["\(clientID).\(account)"].flatMap(Self.text) }
        guard let user = text("currentUser"), let idToken = text("\(user).idToken"),
            let accessToken = text("\(user).accessToken")
        else { return nil }
        self.init(
            idToken: idToken, accessToken: accessToken, refreshToken: text("\(user).refreshToken"),
            deviceKey: text("\(user).device.id"))
    }

    /// From what Amplify has in the Keychain under the service `com.amplify.awsCognitoAuthPlugin`, in the item whose
    /// account is `amplify.POOL.session`, or `amplify.POOL.IDENTITYPOOL.session` where there is an identity pool.
    ///
    /// - Returns: Nil where no user of a user pool is signed in there, or the data are none of its.
    public init?(amplify session: Data) {
        struct Session: Decodable {
            struct Kind: Decodable { var signedInData: SignedIn? }
            struct SignedIn: Decodable { var cognitoUserPoolTokens: Tokens }
            struct Tokens: Decodable { var idToken, accessToken, refreshToken: String }
            var userPoolOnly: Kind?
            var userPoolAndIdentityPool: Kind?
        }
        guard session.count <= Self.maximumSize,
            let found = try? JSONDecoder().decode(Session.self, from: session),
            let tokens = (found.userPoolOnly ?? found.userPoolAndIdentityPool)?.signedInData?.cognitoUserPoolTokens
        else { return nil }
        self.init(
            idToken: tokens.idToken, accessToken: tokens.accessToken, refreshToken: tokens.refreshToken)
    }

    /// No item of theirs is larger.
    private static let maximumSize = 1 << 20

    private static func text(_ data: Data) -> String? {
        guard data.count <= maximumSize else { return nil }
        return String(data: data, encoding: .utf8).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether they are of this pool and this client of it, and of one user.
    func belong(to pool: BackendEnvironment.UserPool) -> Bool {
        guard let id = JSONWebToken(tokens.idToken)?.claims, let access = JSONWebToken(tokens.accessToken)?.claims
        else {
            return false
        }
        return [id, access].allSatisfy { $0.iss?.hasSuffix("/\(pool.id)") == true }
            && id.aud == pool.clientID && access.client_id == pool.clientID && id.sub != nil && id.sub == access.sub
    }
}

extension LegacyTokens: CustomStringConvertible, CustomReflectable {
    /// Nothing secret.
    public var description: String { "tokens of another library" }
    /// Has nothing of the tokens.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What became of tokens that an earlier version of the program had left.
public enum LegacyAdoption: String, Sendable, Hashable {
    /// The user is signed in with them.
    case adopted
    /// They are another pool's or client's, and were put into quarantine. The user has to sign in.
    case quarantined
    /// A session has begun here before, and goes by what happened since: nothing was done.
    case late
}
