public import Foundation

/// How a file is uploaded.
public struct UploadOptions: Sendable, Hashable {
    /// By which it is found; a new one unless given. Queueing the same id twice is `operations.duplicate`.
    public var id: TransferID?
    /// The attributes that the storage keeps with the object.
    public var attributes: ObjectAttributes
    /// The SHA-256 that the file must have, in 32 bytes: of another, nothing is sent. Nil for any. Costs that the file
    /// is read once more.
    public var sha256: [UInt8]?
    /// Transfers with a greater priority are begun first; within one priority, in the order in which they were queued.
    public var priority: Int
    /// After this time it is of no use any more, and fails unless it is under way.
    public var expires: Date?

    /// An ordinary upload, for ever.
    public init(
        id: TransferID? = nil, attributes: ObjectAttributes = ObjectAttributes(), sha256: [UInt8]? = nil,
        priority: Int = 0, expires: Date? = nil
    ) {
        self.id = id
        self.attributes = attributes
        self.sha256 = sha256
        self.priority = priority
        self.expires = expires
    }
}

/// How an object is downloaded.
public struct DownloadOptions: Sendable, Hashable {
    /// By which it is found; a new one unless given. Queueing the same id twice is `operations.duplicate`.
    public var id: TransferID?
    /// Whether a file that is there is replaced, in one step, when all has arrived.
    public var replacesFile: Bool
    /// The SHA-256 that the bytes must have, in 32 bytes: others never get to the file's place. Nil for any.
    public var sha256: [UInt8]?
    /// Transfers with a greater priority are begun first; within one priority, in the order in which they were queued.
    public var priority: Int
    /// After this time it is of no use any more, and fails unless it is under way.
    public var expires: Date?

    /// An ordinary download, which replaces nothing, for ever.
    public init(
        id: TransferID? = nil, replacesFile: Bool = false, sha256: [UInt8]? = nil, priority: Int = 0,
        expires: Date? = nil
    ) {
        self.id = id
        self.replacesFile = replacesFile
        self.sha256 = sha256
        self.priority = priority
        self.expires = expires
    }
}
