/// Carries objects to and from a storage that speaks as S3 does. `LarderAWS` has one; tests hand in their own.
///
/// Each call is one exchange, but for what the implementation repeats because the server asked for it before it took
/// anything: another region, another clock. The implementation does not repeat an exchange after a failure: the caller
/// decides that.
///
/// An exchange that carries bytes has no deadline but ends with `.timedOut` when none have moved for as long as `idle`
/// says; the others end at their deadline. Cancelling the task ends an exchange with `.cancelled`.
public protocol ObjectTransport: Sendable {
    /// What the storage allows.
    var limits: ObjectLimits { get }

    /// Where requests for a bucket go: connections are counted by it.
    func host(of location: ObjectLocation) -> String

    /// Sends an object in one piece. Whatever was there is replaced at once when all has arrived.
    ///
    /// - Returns: What the storage has. It is known to be what was sent: by a checksum that the storage compared, or by
    ///   its ETag.
    func put(
        _ body: ObjectBody, to location: ObjectLocation, _ attributes: ObjectAttributes, idle: Duration
    ) async throws(ObjectError) -> StoredObject

    /// Begins an upload in parts.
    func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload

    /// Sends a part. One that was sent before under this number is replaced.
    ///
    /// - Returns: The part, known to have arrived as it was sent, with its checksum.
    func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart

    /// All parts that the storage has, ascending by number.
    ///
    /// - Throws: `.noSuchUpload` where it was completed or aborted.
    func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart]

    /// Puts the object together from its parts, which ascend by number.
    ///
    /// - Throws: `.noSuchUpload` where it was completed or aborted, `.incomplete` where a part is missing or another
    ///   one.
    func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject

    /// Gives an upload up; the storage forgets its parts. One that is gone already is no error.
    func abortUpload(_ upload: MultipartUpload, within time: Duration) async throws(ObjectError)

    /// All uploads in parts that were begun and neither completed nor aborted, of keys that begin so.
    func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload]

    /// What the storage says of an object. That it has 0 bytes is not taken from a head alone: the bytes are asked for
    /// as well, since an empty file would take the place of a whole one.
    ///
    /// - Throws: `.notFound`; `.wrongLength` where the storage says 0 bytes and sends some.
    func object(
        at location: ObjectLocation, within time: Duration
    ) async throws(ObjectError) -> StoredObject

    /// Receives a range of an object's bytes, and nothing else: an answer of another range, length or ETag is an error.
    /// Bytes may have gone to the sink before an error.
    ///
    /// - Parameters:
    ///   - range: Not empty.
    ///   - location: Which object.
    ///   - etag: Which bytes are meant; `.changed` is thrown where the object has others by now.
    ///   - sink: What takes the bytes, in their order.
    ///   - idle: After how long without a byte the exchange is given up.
    /// - Returns: The object, with its whole size.
    func get(
        _ range: Range<Int64>, of location: ObjectLocation, etag: String, into sink: ObjectSink, idle: Duration
    ) async throws(ObjectError) -> StoredObject
}

/// What the storage keeps with an object beside its bytes.
public struct ObjectAttributes: Sendable, Hashable, Codable {
    /// The media type, such as `video/quicktime`, in at most 2 KiB; nil: the storage's default.
    public var contentType: String?
    /// What the program notes of it. Names are compared without regard to case; names and values are ASCII, and have at
    /// most 2 KiB in all.
    public var metadata: [String: String]

    /// Nothing but what is given.
    public init(contentType: String? = nil, metadata: [String: String] = [:]) {
        self.contentType = contentType
        self.metadata = metadata
    }
}
