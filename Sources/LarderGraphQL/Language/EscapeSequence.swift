/// An escape sequence of a quoted string: a simple one, `\uXXXX`, a surrogate pair of those, or `\u{X…}`.
struct EscapeSequence {
    var scalar: Unicode.Scalar
    /// In bytes, from the backslash on.
    var length: Int

    private init(scalar: Unicode.Scalar, length: Int) {
        self.scalar = scalar
        self.length = length
    }

    /// Nil where the bytes at `start` are no valid escape sequence. `start` is the backslash's index.
    init?(in bytes: [UInt8], at start: Int) {
        guard start + 1 < bytes.count else { return nil }
        if bytes[start + 1] == UInt8(ascii: "u") {
            self.init(unicodeIn: bytes, at: start)
            return
        }
        let simple: Unicode.Scalar
        switch bytes[start + 1] {
        case UInt8(ascii: "\""): simple = "\""
        case UInt8(ascii: "\\"): simple = "\\"
        case UInt8(ascii: "/"): simple = "/"
        case UInt8(ascii: "b"): simple = "\u{8}"
        case UInt8(ascii: "f"): simple = "\u{C}"
        case UInt8(ascii: "n"): simple = "\n"
        case UInt8(ascii: "r"): simple = "\r"
        case UInt8(ascii: "t"): simple = "\t"
        default: return nil
        }
        self.init(scalar: simple, length: 2)
    }

    private init?(unicodeIn bytes: [UInt8], at start: Int) {
        if start + 2 < bytes.count, bytes[start + 2] == UInt8(ascii: "{") {
            self.init(bracedIn: bytes, at: start)
            return
        }
        guard let unit = Self.fourDigits(in: bytes, at: start + 2) else { return nil }
        if let single = Unicode.Scalar(unit) {
            self.init(scalar: single, length: 6)
            return
        }
        // A leading surrogate means something only with the trailing one right behind it.
        guard unit < 0xDC00, start + 7 < bytes.count,
            bytes[start + 6] == UInt8(ascii: "\\"), bytes[start + 7] == UInt8(ascii: "u"),
            let trailing = Self.fourDigits(in: bytes, at: start + 8), (0xDC00...0xDFFF).contains(trailing),
            let pair = Unicode.Scalar(0x10000 + ((unit - 0xD800) << 10) + (trailing - 0xDC00))
        else { return nil }
        self.init(scalar: pair, length: 12)
    }

    private init?(bracedIn bytes: [UInt8], at start: Int) {
        var value: UInt32 = 0
        var index = start + 3
        while index < bytes.count, let digit = bytes[index].hexadecimalValue {
            value = value << 4 | digit
            guard value <= 0x10FFFF else { return nil }
            index += 1
        }
        guard index > start + 3, index < bytes.count, bytes[index] == UInt8(ascii: "}"),
            let braced = Unicode.Scalar(value)
        else { return nil }
        self.init(scalar: braced, length: index + 1 - start)
    }

    private static func fourDigits(in bytes: [UInt8], at start: Int) -> UInt32? {
        guard start + 4 <= bytes.count else { return nil }
        var value: UInt32 = 0
        for byte in bytes[start..<start + 4] {
            guard let digit = byte.hexadecimalValue else { return nil }
            value = value << 4 | digit
        }
        return value
    }
}
