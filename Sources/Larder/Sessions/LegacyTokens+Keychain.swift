#if canImport(Security)
public import Foundation
import Security

// Not compiled where this is developed. The formats are decoded by `LegacyTokens`, which is.

extension LegacyTokens {
    /// What Amplify, or else AWSMobileClient, has in the Keychain for an environment's user pool; nil where no user is
    /// signed in there, and where the Keychain cannot be read now. Nothing is removed from it.
    ///
    /// - Parameters:
    ///   - environment: The backend, with its name.
    ///   - bundle: The identifier of the app that had signed the user in.
    ///   - accessGroup: Where the app shared its items with others.
    public static func inKeychain(
        of environment: BackendEnvironment, bundle: String = Bundle.main.bundleIdentifier ?? "",
        accessGroup: String? = nil
    ) -> LegacyTokens? {
        guard let pool = environment.userPool else { return nil }
        let names = [[pool.id, environment.identityPool?.id], [pool.id]].map {
            "amplify.\($0.compactMap(\.self).joined(separator: ".")).session"
        }
        let service = "com.amplify.awsCognitoAuthPlugin" + (accessGroup == nil ? "" : "Shared")
        for name in names {
            guard let data = item(service, name, accessGroup), let tokens = LegacyTokens(amplify: data) else {
                continue
            }
            return tokens
        }
        let mobile = "\(bundle).AWSCognitoIdentityUserPool"
        var items: [String: Data] = [:]
        func read(_ account: String) -> String? {
            items[account] = item(mobile, account, accessGroup)
            return items[account].flatMap { String(data: $0, encoding: .utf8) }
        }
        guard let user = read("\(pool.clientID).currentUser") else { return nil }
        for part in ["idToken", "accessToken", "refreshToken", "device.id"] {
            _ = read("\(pool.clientID).\(user).\(part)")
        }
        return LegacyTokens(mobileClient: items, clientID: pool.clientID)
    }

    private static func item(_ service: String, _ account: String, _ accessGroup: String?) -> Data? {
        var query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
            kSecAttrAccount as String: account, kSecReturnData as String: true,
            kSecMatchLimit as String: kSecMatchLimitOne,
        ]
        if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
        var found: CFTypeRef?
        guard SecItemCopyMatching(query as CFDictionary, &found) == errSecSuccess else { return nil }
        return found as? Data
    }
}
#endif
