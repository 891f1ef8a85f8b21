import LarderOperations

/// An upload in parts that the storage has begun, and neither completed nor aborted, of a transfer that was forgotten.
/// The storage keeps what has arrived until a program aborts it, as by `ObjectTransport.abortUpload`, or a rule of the
/// bucket's does.
public struct AbandonedUpload: Sendable, Hashable {
    /// Where the object would have been.
    public let location: ObjectLocation
    /// The storage's name for it; nil where the storage was asked to begin it and no name arrived.
    public let id: String?

    init(_ upload: LeftUpload) {
        location = ObjectLocation(
            bucket: upload.bucket, key: upload.key, region: upload.region, storage: upload.storage)
        id = upload.upload
    }
}
