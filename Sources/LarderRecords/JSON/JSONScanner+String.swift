/// The content of a JSON string where it stands in the text, between its quotation marks.
struct ScannedString {
    var start: UnsafePointer<UInt8>
    var count: Int
    /// True if the content must be unescaped before use.
    var hasEscapes: Bool

    @inline(__always)
    func equals(_ other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where start[index] != other[index] { return false }
        return true
    }

    /// Negative where this comes before the other text by their bytes, 0 where they are the same.
    func order(_ other: UnsafeBufferPointer<UInt8>) -> Int {
        for index in 0..<min(count, other.count) where start[index] != other[index] {
            return Int(start[index]) - Int(other[index])
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
                let word = UnsafeRawPointer(cursor).loadUnaligned(as: UInt64.self)
                let special = specialBytes(word)
                if special == 0 {
                    cursor += 8
                } else {
                    cursor += UInt64(littleEndian: special).trailingZeroBitCount >> 3
                    break
                }
            }
            guard cursor < end else { throw JSONError(.unexpectedEnd, at: end - start) }
            let byte = cursor.pointee
            if byte == UInt8(ascii: "\"") {
                position = cursor + 1
                return ScannedString(start: content, count: cursor - content, hasEscapes: hasEscapes)
            }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                cursor += try escapeLength(at: cursor)
            } else if byte < 0x20 {
                throw JSONError(.controlCharacter, at: cursor - start)
            } else if byte < 0x80 {
                cursor += 1
            } else {
                cursor += try sequenceLength(at: cursor)
            }
        }
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
    private func escapeLength(at cursor: UnsafePointer<UInt8>) throws(JSONError) -> Int {
        guard end - cursor >= 2 else { throw JSONError(.unexpectedEnd, at: end - start) }
        switch cursor[1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return 2
        case UInt8(ascii: "u"):
            let unit = try codeUnit(at: cursor)
            if unit & 0xFC00 == 0xD800 {
                guard end - cursor >= 8, cursor[6] == UInt8(ascii: "\\"), cursor[7] == UInt8(ascii: "u"),
                    try codeUnit(at: cursor + 6) & 0xFC00 == 0xDC00
                else { throw JSONError(.invalidEscape, at: cursor - start) }
                return 12
            }
            guard unit & 0xFC00 != 0xDC00 else { throw JSONError(.invalidEscape, at: cursor - start) }
            return 6
        default:
            throw JSONError(.invalidEscape, at: cursor - start)
        }
    }

    private func codeUnit(at cursor: UnsafePointer<UInt8>) throws(JSONError) -> UInt32 {
        guard end - cursor >= 6 else { throw JSONError(.unexpectedEnd, at: end - start) }
        var unit: UInt32 = 0
        for index in 2..<6 {
            let digit = hexadecimalDigit(cursor[index])
            guard digit < 16 else { throw JSONError(.invalidEscape, at: cursor - start) }
            unit = unit << 4 | digit
        }
        return unit
    }

    /// The length of the UTF-8 sequence at `cursor`, by table 3-7 of the Unicode standard.
    private func sequenceLength(at cursor: UnsafePointer<UInt8>) throws(JSONError) -> Int {
        let left = end - cursor
        func isTail(_ index: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
            index < left && range.contains(cursor[index])
        }
        switch cursor.pointee {
        case 0xC2...0xDF where isTail(1): return 2
        case 0xE0 where isTail(1, 0xA0...0xBF) && isTail(2): return 3
        case 0xE1...0xEC where isTail(1) && isTail(2), 0xEE...0xEF where isTail(1) && isTail(2): return 3
        case 0xED where isTail(1, 0x80...0x9F) && isTail(2): return 3
        case 0xF0 where isTail(1, 0x90...0xBF) && isTail(2) && isTail(3): return 4
        case 0xF1...0xF3 where isTail(1) && isTail(2) && isTail(3): return 4
        case 0xF4 where isTail(1, 0x80...0x8F) && isTail(2) && isTail(3): return 4
        default: throw JSONError(.invalidUTF8, at: cursor - start)
        }
    }
}

/// Writes the content of a string that `JSONScanner.string()` has passed over, without its escapes.
///
/// - Parameter target: Room for at least `scanned.count` bytes; unescaping never lengthens.
/// - Returns: The number of bytes written.
func unescape(_ scanned: ScannedString, into target: UnsafeMutablePointer<UInt8>) -> Int {
    var source = scanned.start
    let end = source + scanned.count
    var written = 0
    while source < end {
        // Most text stands between escapes: it is moved as it is.
        var plain = source
        while plain < end && plain.pointee != UInt8(ascii: "\\") { plain += 1 }
        let run = plain - source
        if run > 0 {
            (target + written).update(from: source, count: run)
            written += run
            source = plain
            if source == end { break }
        }
        switch source[1] {
        case UInt8(ascii: "u"):
            var scalar = fourDigits(source + 2)
            source += 6
            if scalar & 0xFC00 == 0xD800 {
                scalar = 0x10000 + (scalar & 0x3FF) << 10 + fourDigits(source + 2) & 0x3FF
                source += 6
            }
            written += encodeUTF8(scalar, into: target + written)
            continue
        case UInt8(ascii: "b"): target[written] = 0x08
        case UInt8(ascii: "f"): target[written] = 0x0C
        case UInt8(ascii: "n"): target[written] = 0x0A
        case UInt8(ascii: "r"): target[written] = 0x0D
        case UInt8(ascii: "t"): target[written] = 0x09
        case let same: target[written] = same
        }
        written += 1
        source += 2
    }
    return written
}

private func fourDigits(_ digits: UnsafePointer<UInt8>) -> UInt32 {
    hexadecimalDigit(digits[0]) << 12 | hexadecimalDigit(digits[1]) << 8
        | hexadecimalDigit(digits[2]) << 4 | hexadecimalDigit(digits[3])
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

private func encodeUTF8(_ scalar: UInt32, into target: UnsafeMutablePointer<UInt8>) -> Int {
    switch scalar {
    case 0..<0x80:
        target[0] = UInt8(scalar)
        return 1
    case 0x80..<0x800:
        target[0] = UInt8(0xC0 | scalar >> 6)
        target[1] = UInt8(0x80 | scalar & 0x3F)
        return 2
    case 0x800..<0x10000:
        target[0] = UInt8(0xE0 | scalar >> 12)
        target[1] = UInt8(0x80 | scalar >> 6 & 0x3F)
        target[2] = UInt8(0x80 | scalar & 0x3F)
        return 3
    default:
        target[0] = UInt8(0xF0 | scalar >> 18)
        target[1] = UInt8(0x80 | scalar >> 12 & 0x3F)
        target[2] = UInt8(0x80 | scalar >> 6 & 0x3F)
        target[3] = UInt8(0x80 | scalar & 0x3F)
        return 4
    }
}
