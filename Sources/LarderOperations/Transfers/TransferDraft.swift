package import Foundation

/// A transfer that is to be queued.
package struct TransferDraft: Sendable {
    /// Which way the bytes go.
    package enum Kind: Int, StoredCase {
        case upload = 0
        case download = 1

        package static let subject = "A transfer's kind"
    }

    /// By which it is found again.
    package var id: UUID
    /// The partition that it belongs to.
    package var partition: String
    package var kind: Kind
    /// The name of the storage; nil: the one that has none.
    package var storage: String?
    package var bucket: String
    package var key: String
    package var region: String?
    /// The file that is read, or that is to be made.
    package var path: String
    /// Whether a download may replace a file that is there.
    package var replaces: Bool
    package var contentType: String?
    /// JSON.
    package var metadata: [UInt8]?
    /// Transfers with a higher priority are begun first; within one, in the order in which they were queued.
    package var priority: Int
    /// The file that an upload is of; nil for a download.
    package var source: FileIdentity?
    /// The SHA-256 that all bytes must have, in 32 bytes; nil for any.
    package var sha256: [UInt8]?
    package var created: Date
    /// When it is of no use any more, unless it is under way then.
    package var expires: Date?

    package init(
        id: UUID? = nil, partition: String, kind: Kind, storage: String? = nil, bucket: String, key: String,
        region: String? = nil, path: String, replaces: Bool = false, contentType: String? = nil,
        metadata: [UInt8]? = nil, priority: Int = 0, source: FileIdentity? = nil, sha256: [UInt8]? = nil, created: Date,
        expires: Date? = nil
    ) {
        self.id = id ?? .ascending(at: created)
        self.partition = partition
        self.kind = kind
        self.storage = storage
        self.bucket = bucket
        self.key = key
        self.region = region
        self.path = path
        self.replaces = replaces
        self.contentType = contentType
        self.metadata = metadata
        self.priority = priority
        self.source = source
        self.sha256 = sha256
        self.created = created
        self.expires = expires
    }
}

/// By which a file is known to be the same, and not to have been written to.
package struct FileIdentity: Sendable, Hashable {
    package var device: Int64
    package var inode: Int64
    package var size: Int64
    /// Nanoseconds since 1970.
    package var modified: Int64

    package init(device: Int64, inode: Int64, size: Int64, modified: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
    }

    /// Whether it is the same file as it was, wherever its volume is mounted now: devices are numbered anew.
    package func isSame(as other: FileIdentity) -> Bool {
        inode == other.inode && size == other.size && modified == other.modified
    }
}
