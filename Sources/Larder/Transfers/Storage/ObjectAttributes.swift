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
