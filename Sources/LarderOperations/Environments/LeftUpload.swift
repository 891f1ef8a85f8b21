/// An upload in parts that the storage has begun, and neither completed nor aborted, of a transfer that was forgotten.
package struct LeftUpload: Sendable, Hashable {
    package var bucket: String
    package var key: String
    package var region: String?
    /// The storage's name for it; nil where the storage was asked to begin it and no name arrived.
    package var upload: String?
}
