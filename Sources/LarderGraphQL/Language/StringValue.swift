/// What string tokens mean (sections 2.9.4 of the specification).
enum StringValue {
    /// The value between the quotes of a string that the lexer let pass.
    static func ofString(_ bytes: [UInt8], in range: Range<Int>) -> String {
        guard bytes[range].contains(UInt8(ascii: "\\")) else {
            return String(decoding: bytes[range], as: UTF8.self)
        }
        var value: [UInt8] = []
        value.reserveCapacity(range.count)
        var index = range.lowerBound
        while index < range.upperBound {
            if bytes[index] == UInt8(ascii: "\\"), let escape = EscapeSequence(in: bytes, at: index) {
                value.append(contentsOf: Array(String(escape.scalar).utf8))
                index += escape.length
            } else {
                value.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: value, as: UTF8.self)
    }

    /// The value between the triple quotes of a block string: without the indentation that all lines but the first
    /// share, and without blank lines at either end. Lines are joined by line feeds.
    static func ofBlockString(_ bytes: [UInt8], in range: Range<Int>) -> String {
        var lines = lines(of: bytes, in: range)
        var indentation = Int.max
        for line in lines.dropFirst() {
            let blanks = line.prefix(while: \.isBlank).count
            if blanks < line.count { indentation = min(indentation, blanks) }
        }
        for index in lines.indices.dropFirst() {
            lines[index] = lines[index].dropFirst(indentation)
        }
        let isFilled = { (line: ArraySlice<UInt8>) in !line.allSatisfy(\.isBlank) }
        guard let first = lines.firstIndex(where: isFilled), let last = lines.lastIndex(where: isFilled) else {
            return ""
        }
        var value: [UInt8] = []
        value.reserveCapacity(range.count)
        for index in first...last {
            if index > first { value.append(UInt8(ascii: "\n")) }
            value.append(contentsOf: lines[index])
        }
        return String(decoding: value, as: UTF8.self)
    }

    /// The lines with `\"""` made `"""`.
    private static func lines(of bytes: [UInt8], in range: Range<Int>) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var line: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            if byte.isLineTerminator {
                lines.append(line[...])
                line = []
                let isPair =
                    byte == UInt8(ascii: "\r") && index + 1 < range.upperBound
                    && bytes[index + 1] == UInt8(ascii: "\n")
                index += isPair ? 2 : 1
            } else if byte == UInt8(ascii: "\\"), index + 3 < range.upperBound,
                bytes[index + 1..<index + 4].elementsEqual([UInt8](repeating: UInt8(ascii: "\""), count: 3))
            {
                line.append(contentsOf: bytes[index + 1..<index + 4])
                index += 4
            } else {
                line.append(byte)
                index += 1
            }
        }
        lines.append(line[...])
        return lines
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}
