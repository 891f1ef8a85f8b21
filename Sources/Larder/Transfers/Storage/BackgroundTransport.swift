public import Foundation

/// Carries whole files outside of this program, and goes on while the program is suspended or dead: the system's own
/// service, or another process.
///
/// A runner hands a transfer over under its id, which is in the store by then. The next runner, after a restart too, asks
/// for what is known by these ids, and hands nothing over that is known. What is known of a transfer is kept until `end`.
///
/// What a background transport says is checked: a download counts when the file has the object's size, and its checksum
/// where the storage tells one. A runner that does not know the transport leaves a transfer alone for a week after it was
/// handed over, so the transport begins no exchange for one after that.
///
/// A background transport belongs to one store. Each of its calls but `outcome` is given up after the runner's `timeout`
/// and `idle` together.
public protocol BackgroundTransport: Sendable {
    /// The transfers that are under way, or have ended and were not forgotten by `end`.
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

    /// Takes a download over. Once this has returned, the download goes on without the program, and is known.
    ///
    /// - Parameters:
    ///   - location: Whose object is wanted.
    ///   - etag: Which bytes are meant. Where the object has others by then, the download fails with `.changed`.
    ///   - id: Not known yet.
    ///   - file: Where the whole object is put, in one step, before the download has ended well. A file that is there is
    ///     replaced. The folder is on the store's volume.
    func download(
        _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
    ) async throws(ObjectError)

    /// Waits until a transfer has ended.
    ///
    /// - Returns: What the storage has; nil where nothing is known of the transfer.
    /// - Throws: Why the transfer failed; `.cancelled` where the calling task was cancelled, and the transfer goes on.
    func outcome(of id: UUID) async throws(ObjectError) -> StoredObject?

    /// Breaks a transfer off where it is under way, and forgets it. Does nothing where it is not known.
    func end(_ id: UUID) async throws(ObjectError)
}
