/// What a value word says.
enum ValueTag: UInt8 {
    case null = 0
    case no, yes
    /// The content is the number, 28 bits signed.
    case smallInt
    /// The payload is eight bytes.
    case int, float
    /// The payload is a length as a variable-length integer, then as many bytes.
    case number, string, json
    /// The payload is a count as a variable-length integer, then as many value words.
    case list
    /// The content is the RecordID of an entity, or of a part.
    case reference, part
    /// The payload is the RecordID in eight bytes.
    case wideReference, widePart
    /// The payload is where the text stands in the `TextHeap`: segment, offset and length, four bytes each.
    case farString, farJSON
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
        // The tags are numbered without gaps from 0, as which they lie in memory: the compiler's own conversion is a
        // call and a table, for each value that is read.
        return number <= ValueTag.farJSON.rawValue ? unsafeBitCast(number, to: ValueTag.self) : nil
    }

    @inline(__always)
    var content: UInt32 { bits & 0x0FFF_FFFF }

    @inline(__always)
    var smallInt: Int64 { Int64(Int32(bitPattern: bits << 4) >> 4) }

    static func fitsSmallInt(_ value: Int64) -> Bool { value >= -(1 << 27) && value < 1 << 27 }
}
