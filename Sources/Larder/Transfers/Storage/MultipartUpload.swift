/// An upload in parts that the storage has begun. It keeps what was sent, and charges for it, until it is completed or
/// aborted.
public struct MultipartUpload: Sendable, Hashable {
    /// Where the object will be.
    public var location: ObjectLocation
    /// The storage's name for the upload.
    public var id: String

    /// An upload that was begun.
    public init(location: ObjectLocation, id: String) {
        self.location = location
        self.id = id
    }
}

/// A part that the storage has.
public struct UploadedPart: Sendable, Hashable {
    /// From 1.
    public var number: Int
    /// In bytes; nil where the storage does not say.
    public var size: Int64?
    /// As the storage sent it.
    public var etag: String
    /// CRC-32C of its bytes: of the bytes that were sent, or of the ones that the storage lists.
    public var crc32c: UInt32?

    /// A part of this number and ETag.
    public init(number: Int, size: Int64?, etag: String, crc32c: UInt32? = nil) {
        self.number = number
        self.size = size
        self.etag = etag
        self.crc32c = crc32c
    }
}
