/// What a storage allows. Sizes in bytes.
public struct ObjectLimits: Sendable, Hashable {
    /// The largest object that is sent in one piece.
    public var largestPut: Int64
    /// The smallest part but the last.
    public var smallestPart: Int64
    /// The largest part.
    public var largestPart: Int64
    /// How many parts an upload may have.
    public var maximumParts: Int
    /// The largest object.
    public var largestObject: Int64

    /// Limits that are said.
    public init(
        largestPut: Int64, smallestPart: Int64, largestPart: Int64, maximumParts: Int, largestObject: Int64
    ) {
        self.largestPut = largestPut
        self.smallestPart = smallestPart
        self.largestPart = largestPart
        self.maximumParts = maximumParts
        self.largestObject = largestObject
    }

    /// Amazon S3's: 5 GiB in one piece, 10,000 parts of 5 MiB to 5 GiB, 5 TiB in all.
    public static let s3 = ObjectLimits(
        largestPut: 5 << 30, smallestPart: 5 << 20, largestPart: 5 << 30, maximumParts: 10_000,
        largestObject: 5 << 40)
}
