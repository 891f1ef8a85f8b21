import Foundation

/// The folder relative to which the files of transfers are noted, so that they are found where it has moved.
package struct HomeFolder: Sendable {
    /// Without a slash at its end.
    package let path: String

    package init(_ path: String) { self.path = Self.withoutLink(path.hasSuffix("/") ? String(path.dropLast()) : path) }

    /// On Apple's systems `/var` is a link to `/private/var`, and both are told.
    private static func withoutLink(_ path: String) -> String {
        path.utf8.starts(with: "/private/var/".utf8) ? String(path.dropFirst("/private".count)) : path
    }

    /// What is stored of a path: the rest of it below the folder, or all.
    func stored(_ path: String) -> String {
        let (whole, start) = (Self.withoutLink(path), self.path + "/")
        return whole.utf8.starts(with: start.utf8)
            ? String(decoding: whole.utf8.dropFirst(start.utf8.count), as: UTF8.self)
            : path
    }

    func located(_ stored: String) -> String { stored.hasPrefix("/") ? stored : "\(path)/\(stored)" }

    /// The same of a path that was stored whole, before the folder moved. An app's container has a UUID for its name, and
    /// another one after a move; the former one is gone then.
    ///
    /// - Parameter isThere: Whether there is a folder.
    func storedFormerly(_ path: String, isThere: (String) throws -> Bool) rethrows -> String {
        let (above, name) = (self.path as NSString, (self.path as NSString).lastPathComponent)
        let parent = above.deletingLastPathComponent + "/"
        let whole = Self.withoutLink(path)
        guard UUID(uuidString: name) != nil, whole.utf8.starts(with: parent.utf8) else { return stored(path) }
        let rest = String(decoding: whole.utf8.dropFirst(parent.utf8.count), as: UTF8.self)
        let parts = rest.split(separator: "/", maxSplits: 1)
        guard parts.count == 2, UUID(uuidString: String(parts[0])) != nil, try !isThere(parent + parts[0]) else {
            return stored(path)
        }
        return String(parts[1])
    }
}
