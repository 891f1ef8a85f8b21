#if canImport(Security)
public import Foundation
import Security

/// Keys in the Keychain of Apple's systems, of this device alone. Not compiled where this is developed.
public struct KeychainKeyProvider: KeyProvider {
    /// Which store's keys they are.
    public let store: String
    /// The group of programs that share them; nil: this program alone.
    public let accessGroup: String?

    /// - Parameters:
    ///   - store: A name of the program's own, the same at every start.
    ///   - accessGroup: The Keychain's access group; nil for the program's own.
    public init(store: String, accessGroup: String? = nil) {
        self.store = store
        self.accessGroup = accessGroup
    }

    /// The store's name.
    public var description: String { "the Keychain's keys of \(store)" }

    /// - Throws: `.missing`, `.locked`, `.unreadable`, `.damaged`, `.foreign`, `.newerFormat`.
    public func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
        var query = query
        query[kSecReturnData as String] = true
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &found)
        guard status == errSecSuccess, let data = found as? Data else { throw failure(status, .unreadable) }
        return try KeyText(parsing: Array(data), of: description).keys
    }

    /// - Throws: `.notWritable`, and as `keys`.
    public func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        let deadline = SuspendingClock.now + time
        let new = MasterKeys(current: MasterKey())
        var item = query
        item[kSecValueData as String] = Data(KeyText(new).text.utf8)
        item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        let status = SecItemAdd(item as CFDictionary, nil)
        if status == errSecDuplicateItem { return try await keys(within: .until(deadline)) }
        guard status == errSecSuccess else { throw failure(status, .notWritable) }
        return new
    }

    /// - Throws: `.notWritable`, and as `keys`.
    public func addKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        try put(try await keys(within: time).adding())
    }

    /// - Throws: `.notWritable`, and as `keys`.
    public func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {
        _ = try put(try await keys(within: time).dropping(ids))
    }

    private func put(_ keys: MasterKeys) throws(KeyError) -> MasterKeys {
        let change = [kSecValueData as String: Data(KeyText(keys).text.utf8)]
        let status = SecItemUpdate(query as CFDictionary, change as CFDictionary)
        guard status == errSecSuccess else { throw failure(status, .notWritable) }
        return keys
    }

    private var query: [String: Any] {
        var query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "larder",
            kSecAttrAccount as String: store, kSecUseDataProtectionKeychain as String: true,
        ]
        query[kSecAttrAccessGroup as String] = accessGroup
        return query
    }

    private func failure(_ status: OSStatus, _ otherwise: KeyError.Code) -> KeyError {
        switch status {
        case errSecItemNotFound: KeyError(.missing, "There are none of \(self)")
        case errSecInteractionNotAllowed: KeyError(.locked, "\(self) are locked; unlock the device")
        case errSecMissingEntitlement:
            KeyError(
                otherwise,
                "\(self) cannot be used by this program: it is not signed with a Keychain access group. "
                    + "Add the entitlement keychain-access-groups, or use FileKeyProvider.")
        default: KeyError(otherwise, "\(self) cannot be used (status \(status))")
        }
    }
}
#endif
