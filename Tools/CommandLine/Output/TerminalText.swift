/// Bytes as a terminal may be given them: what it would obey or be deceived by is written out.
///
/// That is every control character but line feed and tab: those of ASCII, DEL, and those from U+0080 to U+009F, which
/// terminals take for escape sequences too; and the characters that turn the direction of the text around them, by
/// which a text can look like another. They become `\\u009b` and the like, as JSON has them, so that JSON stays the
/// JSON that it was. A byte that is no UTF-8 becomes `\\x9b`.
package enum TerminalText {
    package static func visible(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.contains(where: { !isPlain($0) }) else { return bytes }
        var (result, input, parser) = ([UInt8](), bytes.makeIterator(), Unicode.UTF8.ForwardParser())
        result.reserveCapacity(bytes.count + 64)
        var position = 0
        while true {
            switch parser.parseScalar(from: &input) {
            case .valid(let encoded):
                position += encoded.count
                let scalar = Unicode.UTF8.decode(encoded)
                if isHarmless(scalar) { result += encoded } else { result += escape(scalar).utf8 }
            case .error(let length):
                for byte in bytes[position..<position + length] { result += "\\x\(digits(UInt32(byte), 2))".utf8 }
                position += length
            case .emptyInput: return result
            }
        }
    }

    /// The text with the same characters written out.
    package static func visible(_ text: String) -> String {
        guard !text.unicodeScalars.allSatisfy(isHarmless) else { return text }
        return text.unicodeScalars.map { isHarmless($0) ? String($0) : escape($0) }.joined()
    }

    /// The columns that a text takes on a terminal: two for each character of East Asian width and each pictograph, none
    /// for a mark that stands on another character.
    static func width(of text: String) -> Int {
        text.utf8.allSatisfy { $0 < 0x80 } ? text.utf8.count : text.reduce(0) { $0 + width(of: $1) }
    }

    private static func width(of character: Character) -> Int {
        var width = 0
        for scalar in character.unicodeScalars {
            switch scalar.value {
            // A pictograph, where the text could be shown without one.
            case 0xFE0F: width = max(width, 2)
            // The voiced sound marks of half width stand beside their character.
            case 0xFF9E, 0xFF9F: width += 1
            case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
                0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
                0x1F900...0x1FAFF, 0x20000...0x3FFFD:
                width = 2
            // Elsewhere, too, there are pictographs, and the letters that make a flag by twos.
            case _ where scalar.properties.isEmojiPresentation: width = 2
            default:
                switch scalar.properties.generalCategory {
                case .nonspacingMark, .enclosingMark, .format: break
                default: width = max(width, 1)
                }
            }
        }
        return width
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte < 0x7F || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t")
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: true
        case ..<0x20, 0x7F...0x9F: false
        case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: false
        default: true
        }
    }

    /// All of them have at most four digits.
    private static func escape(_ scalar: Unicode.Scalar) -> String { "\\u\(digits(scalar.value, 4))" }

    private static func digits(_ number: UInt32, _ count: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}
