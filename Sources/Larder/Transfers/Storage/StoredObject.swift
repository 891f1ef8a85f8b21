/// What the storage says of an object that it has.
public struct StoredObject: Sendable, Hashable {
    /// Names these bytes under this key: other bytes have another one. With its quotation marks, as the server sends
    /// it.
    public var etag: String
    /// Whether the ETag is made of the bytes' MD5 as S3 makes it; ETags of objects that are encrypted with a key of the
    /// user's look alike and tell nothing.
    public var etagIsDigest: Bool
    /// In bytes; nil where the server does not say.
    public var size: Int64?
    /// The version's id, in buckets that keep versions.
    public var version: String?
    /// CRC-32C of all its bytes, where the storage knows it: of an object that was put together from parts it may know
    /// only those of the parts.
    public var crc32c: UInt32?
    /// SHA-256 of all its bytes, where the storage knows it.
    public var sha256: [UInt8]?
    /// The attributes that the storage keeps with it.
    public var attributes: ObjectAttributes

    /// An object of this ETag.
    public init(
        etag: String, etagIsDigest: Bool = true, size: Int64? = nil, version: String? = nil, crc32c: UInt32? = nil,
        sha256: [UInt8]? = nil, attributes: ObjectAttributes = ObjectAttributes()
    ) {
        self.etag = etag
        self.etagIsDigest = etagIsDigest
        self.size = size
        self.version = version
        self.crc32c = crc32c
        self.sha256 = sha256
        self.attributes = attributes
    }
}
