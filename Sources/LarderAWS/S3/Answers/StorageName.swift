/// Names that a storage gives: of uploads, objects' bytes, versions and places in a list. They are kept on disk, and go
/// into the heads of later requests.
enum StorageName {
    /// In bytes. S3's own have at most 1,024.
    static let maximumSize = 2 << 10

    /// Whether a name can be kept and sent.
    static func isUsable(_ name: String) -> Bool { !name.isEmpty && name.utf8.count <= maximumSize }
}

extension String {
    /// The beginning of what a storage writes into an error for people to read.
    var asStorageLabel: String { String(prefix(200)) }
}
