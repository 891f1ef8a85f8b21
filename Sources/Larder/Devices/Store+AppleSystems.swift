package import Foundation
import LarderFiles

#if canImport(Security)
import Security
#endif
#if canImport(UIKit)
import UIKit
#endif

// What only Apple's systems know. Not compiled where this is developed, but for the last branch.

#if os(iOS) || os(tvOS) || os(visionOS)
extension Store.Options {
    /// An app's container, which moves when the app is updated.
    static var systemHome: URL? { URL(filePath: NSHomeDirectory()) }
    static var systemDeviceTokens: (any DeviceTokens)? { KeychainDeviceTokens() }

    /// The folder's name is the same wherever the app's container is.
    package func keys(besides folder: URL) -> any KeyProvider {
        keys ?? KeychainKeyProvider(store: folder.lastPathComponent)
    }
}

extension Store {
    /// Suspends the store whenever the app leaves the screen, and resumes it when it comes back, until `close`: one line
    /// for an app, right after the store was opened.
    @MainActor public func suspendInBackground() {
        let center = NotificationCenter.default
        center.addObserver(forName: UIApplication.didEnterBackgroundNotification, object: nil, queue: nil) {
            [weak self] _ in
            // Keeps the process from being suspended until the block returns.
            ProcessInfo.processInfo.performExpiringActivity(withReason: "suspending a store") { isExpired in
                guard !isExpired, let self else { return }
                let hasEnded = DispatchSemaphore(value: 0)
                Task {
                    do { try await self.suspend() } catch {
                        self.options.logger.warning("the store is not suspended", metadata: ["error": "\(error)"])
                    }
                    hasEnded.signal()
                }
                hasEnded.wait()
            }
        }
        center.addObserver(forName: UIApplication.willEnterForegroundNotification, object: nil, queue: nil) {
            [weak self] _ in
            do { try self?.resume() } catch {
                self?.options.logger.error("the store is not resumed", metadata: ["error": "\(error)"])
            }
        }
    }
}
#else
extension Store.Options {
    static var systemHome: URL? { nil }
    static var systemDeviceTokens: (any DeviceTokens)? { nil }

    package func keys(besides folder: URL) -> any KeyProvider { keys ?? FileKeyProvider(besides: folder, files) }
}
#endif

#if canImport(Security)
/// Tokens in the Keychain, of this device alone: neither a backup nor another device has them.
public struct KeychainDeviceTokens: DeviceTokens {
    private struct Failure: Error { var status: OSStatus }

    /// Needs a signed program with a Keychain access group.
    public init() {}

    private func query(_ store: String) -> [String: Any] {
        [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "larder.device",
            kSecAttrAccount as String: store, kSecUseDataProtectionKeychain as String: true,
        ]
    }

    /// The token of a store in this device's Keychain; nil where it has none.
    public func token(of store: String) throws -> String? {
        var query = query(store)
        query[kSecReturnData as String] = true
        var found: CFTypeRef?
        switch SecItemCopyMatching(query as CFDictionary, &found) {
        case errSecSuccess: return (found as? Data).map { String(decoding: $0, as: UTF8.self) }
        case errSecItemNotFound: return nil
        case let status: throw Failure(status: status)
        }
    }

    /// Puts the token of a store into this device's Keychain, in place of one that is there.
    public func keep(_ token: String, of store: String) throws {
        let data = [kSecValueData as String: Data(token.utf8)]
        var status = SecItemUpdate(query(store) as CFDictionary, data as CFDictionary)
        if status == errSecItemNotFound {
            var item = query(store).merging(data) { $1 }
            item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            status = SecItemAdd(item as CFDictionary, nil)
        }
        guard status == errSecSuccess else { throw Failure(status: status) }
    }
}
#endif

extension Store {
    /// Leaves out of the system's backups what can be fetched again, and has files readable once the device was unlocked
    /// for the first time. Folders hand that on to what is made in them.
    static func prepareForSystem(_ folder: URL, _ files: FileSystem) {
        #if canImport(Darwin)
        for name in ["records", "schemas", "transfers"] {
            var cache = folder.appending(path: name)
            try? files.makeFolder(cache.path)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try? cache.setResourceValues(values)
        }
        #if os(iOS) || os(tvOS) || os(visionOS)
        try? FileManager.default.setAttributes(
            [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: folder.path)
        #endif
        #endif
    }
}
