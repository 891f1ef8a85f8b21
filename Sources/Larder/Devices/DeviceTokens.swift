public import Foundation
import LarderFiles
import LarderOperations

/// Keeps a token for each store on this device, outside the store, and outside of whatever copies it: the system's
/// backups, another device.
///
/// Each opening of a store replaces the token. A store that finds another one, or none, was copied, or was brought back
/// from a backup: mutations that it has queued may have been sent since, and are set aside as `restored`.
public protocol DeviceTokens: Sendable {
    /// The token of a store; nil where there is none.
    ///
    /// - Throws: Where that cannot be told. Then the store cannot be opened.
    func token(of store: String) throws -> String?
    /// Keeps the token, which survives power loss on return, in the place of the one before.
    func keep(_ token: String, of store: String) throws
}

/// Tokens in a folder of this device that no backup has: a file for each store.
public struct FileDeviceTokens: DeviceTokens {
    /// The folder, which is made.
    package let folder: URL
    private let files = FileSystem()

    /// - Parameter folder: Outside the store, and left out of backups.
    public init(folder: URL) { self.folder = folder }

    private func file(_ store: String) -> String { folder.appending(path: store + ".token").path }

    public func token(of store: String) throws -> String? {
        guard try files.exists(file(store)) else { return nil }
        return String(decoding: try files.bytes(of: file(store)), as: UTF8.self)
    }

    public func keep(_ token: String, of store: String) throws {
        try files.makeFolder(folder.path)
        let new = file(store) + ".new-\(FileSystem.uniqueSuffix())"
        do {
            let made = try files.open(new, [.writing, .new])
            try made.write(Array(token.utf8), at: 0)
            try made.synchronize()
            try files.rename(new, file(store))
        } catch {
            _ = try? files.remove(new)
            throw error
        }
        try files.synchronizeFolder(folder.path)
    }
}

extension DeviceMark {
    package init(_ tokens: any DeviceTokens) {
        self.init(read: { try tokens.token(of: $0) }, keep: { try tokens.keep($0, of: $1) })
    }
}
