import LarderGraphQL

/// Looks whether bytes are JSON (RFC 8259), and keeps nothing of it. One pass.
struct JSONSyntax {
    /// Of values within values: what is queued must be read again, by a reader that takes no more.
    static let maximumDepth = Value.greatestDepth

    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    /// Whether the bytes are one object in UTF-8.
    static func isObject(_ json: [UInt8]) -> Bool { isValue(json) { $0 == UInt8(ascii: "{") } }

    /// Whether the bytes are one value in UTF-8.
    ///
    /// - Parameter isBeginning: Whether the value may begin with a byte.
    static func isValue(_ json: [UInt8], _ isBeginning: (UInt8) -> Bool = { _ in true }) -> Bool {
        json.withUnsafeBufferPointer { bytes in
            var syntax = JSONSyntax(bytes: bytes)
            syntax.skipSpace()
            guard let first = syntax.next, isBeginning(first), syntax.skipValue(depth: 0) else { return false }
            syntax.skipSpace()
            return syntax.next == nil
        } && (json.allSatisfy { $0 < 0x80 } || String(validating: json, as: UTF8.self) != nil)
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let next, next == 0x20 || next == 0x0A || next == 0x0D || next == 0x09 { position += 1 }
    }

    private mutating func skipValue(depth: Int) -> Bool {
        guard let next, depth < Self.maximumDepth else { return false }
        switch next {
        case UInt8(ascii: "{"):
            return skipItems(until: UInt8(ascii: "}")) { syntax in
                guard syntax.skipString() else { return false }
                syntax.skipSpace()
                guard syntax.take(UInt8(ascii: ":")) else { return false }
                syntax.skipSpace()
                return syntax.skipValue(depth: depth + 1)
            }
        case UInt8(ascii: "["):
            return skipItems(until: UInt8(ascii: "]")) { $0.skipValue(depth: depth + 1) }
        case UInt8(ascii: "\""): return skipString()
        case UInt8(ascii: "t"): return skip("true")
        case UInt8(ascii: "f"): return skip("false")
        case UInt8(ascii: "n"): return skip("null")
        default: return skipNumber()
        }
    }

    /// From the opening bracket past the closing one.
    private mutating func skipItems(until end: UInt8, _ skipItem: (inout JSONSyntax) -> Bool) -> Bool {
        position += 1
        skipSpace()
        if take(end) { return true }
        while true {
            skipSpace()
            guard skipItem(&self) else { return false }
            skipSpace()
            if take(end) { return true }
            guard take(UInt8(ascii: ",")) else { return false }
        }
    }

    private mutating func skip(_ word: StaticString) -> Bool {
        for index in 0..<word.utf8CodeUnitCount {
            // Safe: the index is one of the word's.
            guard take(word.utf8Start[index]) else { return false }
        }
        return true
    }

    private mutating func skipNumber() -> Bool {
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")), !skipDigits() { return false }
        if take(UInt8(ascii: ".")), !skipDigits() { return false }
        guard take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) else { return true }
        if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
        return skipDigits()
    }

    private mutating func skipDigits() -> Bool {
        let start = position
        while let next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next) { position += 1 }
        return position > start
    }

    private mutating func skipString() -> Bool {
        guard take(UInt8(ascii: "\"")) else { return false }
        while let next {
            position += 1
            switch next {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"): guard skipEscape() else { return false }
            case ..<0x20: return false
            default: break
            }
        }
        return false
    }

    /// From after the backslash.
    private mutating func skipEscape() -> Bool {
        guard let next else { return false }
        position += 1
        switch next {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return true
        case UInt8(ascii: "u"):
            guard let unit = codeUnit() else { return false }
            guard UTF16.isSurrogate(unit) else { return true }
            // Halves of a character come in pairs, or there is no such text.
            guard UTF16.isLeadSurrogate(unit), take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")),
                let second = codeUnit()
            else { return false }
            return UTF16.isTrailSurrogate(second)
        default: return false
        }
    }

    private mutating func codeUnit() -> UInt16? {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let next, let digit = Character(Unicode.Scalar(next)).hexDigitValue, next < 0x80 else { return nil }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }
}
