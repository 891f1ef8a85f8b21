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

    var offset: Int { Int(truncatingIfNeeded: payload) }
}
