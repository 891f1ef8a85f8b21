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
