import LarderGraphQL

/// Reads JSON text (RFC 8259) from memory, token by token, without copying and without recursion.
///
/// The scanner borrows the bytes it was made with: it must not be used after they are gone. It reads no others, and
/// every rule of JSON and of UTF-8 that it passes over is checked.
///
/// Safe: it looks at no byte before it has compared its place with `end`, and `expectWord` stops where its word does.
struct JSONScanner {
    /// How deep objects and lists may be nested in values that are read whole, by recursion. `Value.fault` holds what
    /// programs make to the same.
    static let maximumDepth = Value.greatestDepth
    /// How deep in values that are passed over and kept as text, without recursion.
    static let maximumSkippedDepth = 512

    let bytes: LentBytes
    /// The next byte, counted from the first.
    var position = 0

    init(_ start: UnsafePointer<UInt8>, count: Int) { bytes = unsafe LentBytes(start, count: count) }

    var end: Int { bytes.count }

    /// Passes over the byte order mark that some servers and editors put before UTF-8, which a reader may ignore
    /// (RFC 8259, section 8.1). Only at the start of a text.
    mutating func skipByteOrderMark() {
        if end >= 3, position == 0, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF { position = 3 }
    }

    func failure(_ reason: JSONError.Reason) -> JSONError {
        JSONError(position < end ? reason : .unexpectedEnd, at: position)
    }

    /// The next byte that is not white space, without passing over it.
    @inline(__always)
    mutating func peek() throws(JSONError) -> UInt8 {
        while position < end {
            let byte = bytes[position]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
            position += 1
        }
        throw JSONError(.unexpectedEnd, at: position)
    }

    /// Passes over `byte` if it comes next.
    @inline(__always)
    mutating func skip(_ byte: UInt8) throws(JSONError) -> Bool {
        guard try peek() == byte else { return false }
        position += 1
        return true
    }

    @inline(__always)
    mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try peek() == byte else { throw failure(.unexpectedByte) }
        position += 1
    }

    /// Passes over `null`, `true` or `false`, whose first byte has been seen.
    mutating func expectWord(_ word: StaticString) throws(JSONError) {
        let count = word.utf8CodeUnitCount
        for index in 0..<count {
            guard position + index < end else { throw JSONError(.unexpectedEnd, at: end) }
            guard unsafe bytes[position + index] == word.utf8Start[index] else { throw failure(.unexpectedByte) }
        }
        position += count
    }

    /// After a member or an element: true if another follows, false at the closing byte.
    @inline(__always)
    mutating func continues(until close: UInt8) throws(JSONError) -> Bool {
        let byte = try peek()
        guard byte == 0x2C || byte == close else { throw failure(.unexpectedByte) }
        position += 1
        return byte == 0x2C
    }

    /// Passes over all white space and requires that nothing follows.
    mutating func expectEnd() throws(JSONError) {
        while position < end {
            let byte = bytes[position]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else {
                throw JSONError(.trailingBytes, at: position)
            }
            position += 1
        }
    }

    /// Passes over one value of any kind.
    mutating func skipValue() throws(JSONError) {
        // One bit a level: 1 in an object, 0 in a list.
        var levels = NestingStack()
        while true {
            switch try peek() {
            case UInt8(ascii: "{"):
                position += 1
                if try !skip(UInt8(ascii: "}")) {
                    guard levels.push(isObject: true) else { throw failure(.nestedTooDeep) }
                    try skipKey()
                    continue
                }
            case UInt8(ascii: "["):
                position += 1
                if try !skip(UInt8(ascii: "]")) {
                    guard levels.push(isObject: false) else { throw failure(.nestedTooDeep) }
                    continue
                }
            case UInt8(ascii: "\""): _ = try string()
            case UInt8(ascii: "n"): try expectWord("null")
            case UInt8(ascii: "t"): try expectWord("true")
            case UInt8(ascii: "f"): try expectWord("false")
            default: _ = try number()
            }
            while let isObject = levels.top {
                if try continues(until: isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    if isObject { try skipKey() }
                    break
                }
                levels.pop()
            }
            if levels.isEmpty { return }
        }
    }

    private mutating func skipKey() throws(JSONError) {
        guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
        _ = try string()
        try expect(UInt8(ascii: ":"))
    }
}

/// Whether each open level of a JSON value is an object or a list, up to the greatest depth.
///
/// Safe: a level is below `maximumSkippedDepth`, for which there are bits; their bytes are used in the closure alone.
struct NestingStack {
    // A bit for each level: as many as `JSONScanner.maximumSkippedDepth`, which `push` does not exceed.
    private var bits: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
    private(set) var depth = 0

    var isEmpty: Bool { depth == 0 }

    var top: Bool? {
        guard depth > 0 else { return nil }
        let level = depth - 1
        return unsafe withUnsafeBytes(of: bits) { bytes in unsafe bytes[level >> 3] & (1 << UInt8(level & 7)) != 0 }
    }

    /// False if the value would be nested too deep.
    mutating func push(isObject: Bool) -> Bool {
        guard depth < JSONScanner.maximumSkippedDepth else { return false }
        let level = depth
        unsafe withUnsafeMutableBytes(of: &bits) { bytes in
            let mask: UInt8 = 1 << UInt8(level & 7)
            if isObject { unsafe bytes[level >> 3] |= mask } else { unsafe bytes[level >> 3] &= ~mask }
        }
        depth += 1
        return true
    }

    mutating func pop() { depth -= 1 }
}
