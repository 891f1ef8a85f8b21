/// What a value word says.
enum ValueTag: UInt8 {
    case null = 0
    case no = 1
    case yes = 2
    /// The content is the number, 28 bits signed.
    case smallInt = 3
    /// The payload is eight bytes.
    case int = 4
    case float = 5
    /// The payload is a length as a variable-length integer, then as many bytes.
    case number = 6
    case string = 7
    case json = 8
    /// The payload is a count as a variable-length integer, then as many value words.
    case list = 9
    /// The content is the RecordID of an entity, or of a part.
    case reference = 10
    case part = 11
    /// The payload is the RecordID in eight bytes.
    case wideReference = 12
    case widePart = 13
    /// The payload is where the text stands in the `TextHeap`: segment, offset and length, four bytes each.
    case farString = 14
    case farJSON = 15
}

/// A value word: see `RecordFormat`.
struct ValueWord: Equatable {
    var bits: UInt32

    @inline(__always)
    init(bits: UInt32) { self.bits = bits }

    @inline(__always)
    init(_ tag: ValueTag, _ content: UInt32 = 0) { bits = UInt32(tag.rawValue) << 28 | content & 0x0FFF_FFFF }

    /// Nil for the tags that the format does not use.
    @inline(__always)
    var tag: ValueTag? {
        let number = UInt8(truncatingIfNeeded: bits >> 28)
        // Safe: the tags are numbered without gaps from 0, as which they lie in memory. The compiler's own conversion
        // is a call and a table, for each value that is read.
        return unsafe number <= ValueTag.farJSON.rawValue ? unsafeBitCast(number, to: ValueTag.self) : nil
    }

    @inline(__always)
    var content: UInt32 { bits & 0x0FFF_FFFF }

    @inline(__always)
    var smallInt: Int64 { Int64(Int32(bitPattern: bits << 4) >> 4) }

    static func fitsSmallInt(_ value: Int64) -> Bool { value >= -(1 << 27) && value < 1 << 27 }
}

/// Where a long text stands outside its record: see `TextHeap`.
struct TextPlace: Equatable {
    static let size = 12

    var segment: UInt32
    /// From the segment's first byte.
    var offset: UInt32
    var count: UInt32
}
