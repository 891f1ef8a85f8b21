/// The content of a JSON string where it stands in the text, between its quotation marks.
///
/// Safe: the other text is the caller's for the length of a comparison, which stops at the shorter one's end.
struct ScannedString {
    let bytes: LentBytes
    /// Of its first byte in the text.
    let offset: Int
    /// True if the content must be unescaped before use.
    let hasEscapes: Bool

    var count: Int { bytes.count }

    @inline(__always)
    func equals(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where unsafe bytes[index] != other[index] { return false }
        return true
    }

    /// Negative where this comes before the other text by their bytes, 0 where they are the same.
    func order(_ other: UnsafeBufferPointer<UInt8>) -> Int {
        for index in 0..<min(count, other.count) where unsafe bytes[index] != other[index] {
            return unsafe Int(bytes[index]) - Int(other[index])
        }
        return count - other.count
    }
}

extension JSONScanner {
    /// Passes over a string, whose quotation mark comes next.
    mutating func string() throws(JSONError) -> ScannedString {
        var cursor = position + 1
        let content = cursor
        var hasEscapes = false
        while true {
            // Eight bytes at a time while all are plain ASCII: no quotation mark, backslash or control character.
            while end - cursor >= 8 {
                let special = specialBytes(bytes.word(at: cursor))
                if special == 0 {
                    cursor += 8
                } else {
                    cursor += UInt64(littleEndian: special).trailingZeroBitCount >> 3
                    break
                }
            }
            guard cursor < end else { throw JSONError(.unexpectedEnd, at: end) }
            let byte = bytes[cursor]
            if byte == UInt8(ascii: "\"") {
                position = cursor + 1
                return ScannedString(bytes: bytes[content..<cursor], offset: content, hasEscapes: hasEscapes)
            }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                cursor += try escapeLength(at: cursor)
            } else if byte < 0x20 {
                throw JSONError(.controlCharacter, at: cursor)
            } else if byte < 0x80 {
                cursor += 1
            } else {
                cursor += try sequenceLength(at: cursor)
                cursor = plainTriples(from: cursor)
            }
        }
    }

    /// Passes over sequences of three bytes, as nearly all of Chinese, Japanese and Korean text is made of.
    ///
    /// - Returns: Where something else begins, or a sequence that needs a closer look.
    @inline(__always)
    private func plainTriples(from start: Int) -> Int {
        var cursor = start
        while end - cursor >= 8 {
            let word = UInt64(littleEndian: bytes.word(at: cursor))
            guard word & 0xC0_C0F0 == 0x80_80E0 else { break }
            // Of the bytes after these two, some are no text.
            let lead = word & 0xFF
            guard lead != 0xE0, lead != 0xED else { break }
            cursor += 3
        }
        return cursor
    }

    /// A word whose highest bit is set in the byte of every quotation mark, backslash, control character or
    /// byte past ASCII. In the bytes after the first such one, bits may be set wrongly.
    @inline(__always)
    private func specialBytes(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        let isQuote = (quote &- ones) & ~quote
        let isBackslash = (backslash &- ones) & ~backslash
        let isControl = (word &- (ones &* 0x20)) & ~word
        return (isQuote | isBackslash | isControl | word) & high
    }

    /// The length of the escape at `cursor`, 2 or 6 bytes. A surrogate must have its other half.
    private func escapeLength(at cursor: Int) throws(JSONError) -> Int {
        guard end - cursor >= 2 else { throw JSONError(.unexpectedEnd, at: end) }
        switch bytes[cursor + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return 2
        case UInt8(ascii: "u"):
            let unit = try codeUnit(at: cursor)
            if unit & 0xFC00 == 0xD800 {
                guard end - cursor >= 8, bytes[cursor + 6] == UInt8(ascii: "\\"),
                    bytes[cursor + 7] == UInt8(ascii: "u"),
                    try codeUnit(at: cursor + 6) & 0xFC00 == 0xDC00
                else { throw JSONError(.invalidEscape, at: cursor) }
                return 12
            }
            guard unit & 0xFC00 != 0xDC00 else { throw JSONError(.invalidEscape, at: cursor) }
            return 6
        default:
            throw JSONError(.invalidEscape, at: cursor)
        }
    }

    private func codeUnit(at cursor: Int) throws(JSONError) -> UInt32 {
        guard end - cursor >= 6 else { throw JSONError(.unexpectedEnd, at: end) }
        var unit: UInt32 = 0
        for index in 2..<6 {
            let digit = hexadecimalDigit(bytes[cursor + index])
            guard digit < 16 else { throw JSONError(.invalidEscape, at: cursor) }
            unit = unit << 4 | digit
        }
        return unit
    }

    /// The length of the UTF-8 sequence at `cursor`, by table 3-7 of the Unicode standard.
    private func sequenceLength(at cursor: Int) throws(JSONError) -> Int {
        let left = end - cursor
        func isTail(_ index: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
            index < left && range.contains(bytes[cursor + index])
        }
        switch bytes[cursor] {
        case 0xC2...0xDF where isTail(1): return 2
        case 0xE0 where isTail(1, 0xA0...0xBF) && isTail(2): return 3
        case 0xE1...0xEC where isTail(1) && isTail(2), 0xEE...0xEF where isTail(1) && isTail(2): return 3
        case 0xED where isTail(1, 0x80...0x9F) && isTail(2): return 3
        case 0xF0 where isTail(1, 0x90...0xBF) && isTail(2) && isTail(3): return 4
        case 0xF1...0xF3 where isTail(1) && isTail(2) && isTail(3): return 4
        case 0xF4 where isTail(1, 0x80...0x8F) && isTail(2) && isTail(3): return 4
        default: throw JSONError(.invalidUTF8, at: cursor)
        }
    }
}

/// Writes the content of a string that `JSONScanner.string()` has passed over, without its escapes.
///
/// Safe: no escape is shorter than what it stands for, so that writing stays within the room that the caller has, and
/// behind reading where both are the same memory.
///
/// - Parameter target: Room for at least `scanned.count` bytes; unescaping never lengthens.
/// - Returns: The number of bytes written.
func unescape(_ scanned: ScannedString, into target: UnsafeMutablePointer<UInt8>) -> Int {
    let bytes = scanned.bytes
    var (source, written) = (0, 0)
    while source < bytes.count {
        // Most text stands between escapes: it is moved as it is.
        var plain = source
        while plain < bytes.count && bytes[plain] != UInt8(ascii: "\\") { plain += 1 }
        if plain > source {
            unsafe bytes.copy(source..<plain, to: target + written)
            written += plain - source
            source = plain
            if source == bytes.count { break }
        }
        switch bytes[source + 1] {
        case UInt8(ascii: "u"):
            var scalar = fourDigits(bytes, source + 2)
            source += 6
            if scalar & 0xFC00 == 0xD800 {
                scalar = 0x10000 + (scalar & 0x3FF) << 10 + fourDigits(bytes, source + 2) & 0x3FF
                source += 6
            }
            written += unsafe encodeUTF8(scalar, into: target + written)
            continue
        case UInt8(ascii: "b"): unsafe target[written] = 0x08
        case UInt8(ascii: "f"): unsafe target[written] = 0x0C
        case UInt8(ascii: "n"): unsafe target[written] = 0x0A
        case UInt8(ascii: "r"): unsafe target[written] = 0x0D
        case UInt8(ascii: "t"): unsafe target[written] = 0x09
        case let same: unsafe target[written] = same
        }
        written += 1
        source += 2
    }
    return written
}

private func fourDigits(_ bytes: LentBytes, _ place: Int) -> UInt32 {
    hexadecimalDigit(bytes[place]) << 12 | hexadecimalDigit(bytes[place + 1]) << 8
        | hexadecimalDigit(bytes[place + 2]) << 4 | hexadecimalDigit(bytes[place + 3])
}

/// 0 to 15, or more where the byte is no hexadecimal digit.
@inline(__always)
private func hexadecimalDigit(_ byte: UInt8) -> UInt32 {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a") + 10)
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A") + 10)
    default: 0xFF
    }
}

/// Safe: it writes four bytes at the most, and fewer than the escape took; `unescape` has room for those.
private func encodeUTF8(_ scalar: UInt32, into target: UnsafeMutablePointer<UInt8>) -> Int {
    switch scalar {
    case 0..<0x80:
        unsafe target[0] = UInt8(scalar)
        return 1
    case 0x80..<0x800:
        unsafe target[0] = UInt8(0xC0 | scalar >> 6)
        unsafe target[1] = UInt8(0x80 | scalar & 0x3F)
        return 2
    case 0x800..<0x10000:
        unsafe target[0] = UInt8(0xE0 | scalar >> 12)
        unsafe target[1] = UInt8(0x80 | scalar >> 6 & 0x3F)
        unsafe target[2] = UInt8(0x80 | scalar & 0x3F)
        return 3
    default:
        unsafe target[0] = UInt8(0xF0 | scalar >> 18)
        unsafe target[1] = UInt8(0x80 | scalar >> 12 & 0x3F)
        unsafe target[2] = UInt8(0x80 | scalar >> 6 & 0x3F)
        unsafe target[3] = UInt8(0x80 | scalar & 0x3F)
        return 4
    }
}
