/// A JSON number, in the narrowest kind that keeps its value.
enum ScannedNumber {
    case int(Int64)
    case float(Double)
    /// Neither `Int64` nor `Double` keeps it: the number's own text, which is ASCII.
    case text(LentBytes, offset: Int)
}

extension JSONScanner {
    /// Passes over a number, whose first byte comes next.
    mutating func number() throws(JSONError) -> ScannedNumber {
        let first = position
        var cursor = position
        let isNegative = cursor < end && bytes[cursor] == UInt8(ascii: "-")
        if isNegative { cursor += 1 }
        var magnitude: UInt64 = 0
        var fits = true
        let digits = cursor
        while cursor < end, isDigit(bytes[cursor]) {
            let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(bytes[cursor] &- 0x30))
            fits = fits && !overflow && !carry
            magnitude = sum
            cursor += 1
        }
        guard cursor > digits else {
            throw cursor < end
                ? JSONError(isNegative ? .invalidNumber : .unexpectedByte, at: cursor)
                : JSONError(.unexpectedEnd, at: position)
        }
        guard cursor - digits == 1 || bytes[digits] != UInt8(ascii: "0") else {
            throw JSONError(.invalidNumber, at: digits)
        }
        let isInteger = cursor == end || (bytes[cursor] != 0x2E && bytes[cursor] | 0x20 != 0x65)
        if isInteger {
            position = cursor
            if fits, !isNegative, let value = Int64(exactly: magnitude) { return .int(value) }
            if fits, isNegative, magnitude > 0, magnitude <= 1 << 63 {
                return .int(Int64(truncatingIfNeeded: 0 &- magnitude))
            }
            return floating(first..<cursor)
        }
        if bytes[cursor] == 0x2E {
            cursor += 1
            let fraction = cursor
            while cursor < end, isDigit(bytes[cursor]) {
                let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
                let (sum, carry) = product.addingReportingOverflow(UInt64(bytes[cursor] &- 0x30))
                fits = fits && !overflow && !carry
                magnitude = sum
                cursor += 1
            }
            guard cursor > fraction else { throw JSONError(.invalidNumber, at: cursor) }
            let hasExponent = cursor < end && bytes[cursor] | 0x20 == 0x65
            if fits, !hasExponent,
                let value = ShortDecimal(significand: magnitude, places: cursor - fraction).exactDouble
            {
                position = cursor
                return .float(isNegative ? -value : value)
            }
        }
        if cursor < end, bytes[cursor] | 0x20 == 0x65 {
            cursor += 1
            if cursor < end, bytes[cursor] == UInt8(ascii: "+") || bytes[cursor] == UInt8(ascii: "-") { cursor += 1 }
            let exponent = cursor
            while cursor < end, isDigit(bytes[cursor]) { cursor += 1 }
            guard cursor > exponent else { throw JSONError(.invalidNumber, at: cursor) }
        }
        position = cursor
        return floating(first..<cursor)
    }

    /// A double if it keeps the decimal value that was written, otherwise the text.
    private func floating(_ place: Range<Int>) -> ScannedNumber {
        let digits = bytes[place]
        let string = digits.text
        guard let value = Double(string), value.isFinite else { return .text(digits, offset: place.lowerBound) }
        // A decimal of 15 significant digits survives the way to a double and back (DBL_DIG); only a number
        // that underflows, or has more digits than that, needs to be compared.
        let written = DecimalDigits(string)
        if written.significand.count <= 15, value.isNormal || written.significand.isEmpty { return .float(value) }
        return DecimalDigits(value.description) == written ? .float(value) : .text(digits, offset: place.lowerBound)
    }
}

@inline(__always)
private func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

/// A decimal number as its significant digits and the power of ten of the last one, so that `1.50`, `15e-1`
/// and `0.0150e2` are equal.
struct DecimalDigits: Equatable {
    var significand: [UInt8] = []
    var exponent = 0
    var isNegative = false

    init(_ text: String) {
        var bytes = text.utf8[...]
        if bytes.first == UInt8(ascii: "-") {
            isNegative = true
            bytes = bytes.dropFirst()
        }
        var afterPoint = false
        while let byte = bytes.first, byte | 0x20 != UInt8(ascii: "e") {
            bytes = bytes.dropFirst()
            if byte == UInt8(ascii: ".") {
                afterPoint = true
                continue
            }
            if afterPoint { exponent -= 1 }
            if !(significand.isEmpty && byte == UInt8(ascii: "0")) { significand.append(byte) }
        }
        if !bytes.isEmpty { exponent = exponent &+ (Int(Substring(bytes.dropFirst())) ?? .max / 2) }
        // An exponent at the end of `Int` wraps: it stays far from that of any double, and is never equal to one.
        while significand.last == UInt8(ascii: "0") {
            significand.removeLast()
            exponent &+= 1
        }
        if significand.isEmpty { exponent = 0 }
    }
}

extension DecimalDigits {
    /// All digits of a whole number; nil where there is a fraction.
    var whole: String? {
        guard exponent >= 0 else { return nil }
        return (isNegative ? "-" : "") + String(decoding: significand, as: UTF8.self)
            + String(repeating: "0", count: exponent)
    }
}

/// Appends a number that is finite, as all numbers that came from JSON are.
func appendJSONNumber(_ number: Double, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: number.description.utf8)
}
