public import Foundation

/// Sends whole files outside of this program, and goes on while the program is suspended or dead: the system's own
/// service, or another process.
///
/// A runner hands an upload over under the transfer's id, which is in the store by then. The next runner, after a
/// restart too, asks for what is known by these ids, and hands nothing over that is known. What is known of an upload is
/// kept until `end`.
///
/// A background transport belongs to one store.
public protocol BackgroundTransport: Sendable {
    /// The uploads that are under way, or have ended and were not forgotten by `end`.
    func known() async throws(ObjectError) -> Set<UUID>

    /// Takes an upload over. Once this has returned, the upload goes on without the program, and is known.
    ///
    /// - Parameters:
    ///   - file: The whole object. It may change while it is sent: then it has another checksum, and the storage is not
    ///     to take it.
    ///   - id: Not known yet.
    ///   - location: Where the object goes.
    ///   - attributes: What the storage is to keep beside the bytes.
    ///   - crc32c: The CRC-32C of the file.
    func upload(
        _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
    ) async throws(ObjectError)

    /// Waits until an upload has ended.
    ///
    /// - Returns: What the storage has; nil where nothing is known of the upload.
    /// - Throws: Why the upload failed; `.cancelled` where the calling task was cancelled, and the upload goes on.
    func outcome(of id: UUID) async throws(ObjectError) -> StoredObject?

    /// Breaks an upload off where it is under way, and forgets it. Does nothing where it is not known.
    func end(_ id: UUID) async throws(ObjectError)
}
