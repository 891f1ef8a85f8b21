import LarderGraphQL

/// The kinds of value that a response holds. `absent` is a selected field of which nothing is known.
enum CellKind: UInt32 {
    case absent = 0
    case null, no, yes
    case int, float
    /// ASCII text of a number that neither `Int64` nor `Double` keeps.
    case number
    /// UTF-8.
    case string
    /// JSON text of an object or list of a custom scalar.
    case json
    case list, object
}

/// One value of a response, 16 bytes at a multiple of 8 in the response's buffer.
///
/// | bytes | | |
/// | --- | --- | --- |
/// | 0-3 | kind | `CellKind` |
/// | 4-7 | count | bytes of text, elements of a list, shape of an object |
/// | 8-15 | payload | the number itself, or the offset of text, elements or fields in the buffer |
///
/// An offset takes 36 bits. Above it a list has how many elements were left out of it.
struct ResponseCell {
    static let size = 16

    var kind: CellKind
    var count: UInt32
    var payload: UInt64

    @inline(__always)
    init(_ kind: CellKind, count: UInt32 = 0, payload: UInt64 = 0) {
        self.kind = kind
        self.count = count
        self.payload = payload
    }

    @inline(__always)
    static func int(_ value: Int64) -> ResponseCell { ResponseCell(.int, payload: UInt64(bitPattern: value)) }

    @inline(__always)
    static func float(_ value: Double) -> ResponseCell { ResponseCell(.float, payload: value.bitPattern) }

    private static let offsetBits: UInt64 = 36

    /// - Parameter leftOut: Elements that are no more, so that the list goes without them.
    @inline(__always)
    static func list(_ count: Int, leftOut: Int, at offset: Int) -> ResponseCell {
        ResponseCell(
            .list, count: UInt32(truncatingIfNeeded: count),
            payload: UInt64(offset) | UInt64(min(leftOut, 1 << 28 - 1)) << offsetBits)
    }

    // `ResponseBuilder.greatest` needs fewer bits.
    @inline(__always)
    var offset: Int { Int(truncatingIfNeeded: payload & (1 << Self.offsetBits - 1)) }
    var leftOut: Int { Int(truncatingIfNeeded: payload >> Self.offsetBits) }
}
