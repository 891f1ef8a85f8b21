import LarderGraphQL

/// Values, each as the field's type says.
///
/// Safe: a string is unescaped where it stood in the parser's own text, and the scanner does not come back to it. What
/// is lent of elements and digits is used before the next change.
extension ResponseParser {
    mutating func value(_ field: FieldOp, level: Int) throws -> ParsedCell {
        let byte = try scanner.peek()
        if byte == UInt8(ascii: "n") {
            try scanner.expectWord("null")
            guard !field.isNonNull(level) else { throw ParseFailure.mismatch("the schema does not allow null here") }
            return ParsedCell(.null)
        }
        if level < Int(field.listDepth) {
            guard byte == UInt8(ascii: "[") else { throw ParseFailure.mismatch("a list was expected") }
            return try list(field, level: level)
        }
        switch field.content {
        case .object:
            guard byte == UInt8(ascii: "{") else { throw ParseFailure.mismatch("an object was expected") }
            return ParsedCell(.object, payload: UInt64(try object(Int(field.selection))))
        case .string, .enumeration, .typename:
            guard byte == UInt8(ascii: "\"") else { throw ParseFailure.mismatch("a string was expected") }
            return try string()
        case .id:
            return byte == UInt8(ascii: "\"") ? try string() : try wholeID(byte)
        case .int: return try integer(byte, else: "an integer was expected")
        case .float: return try number(byte)
        case .boolean: return try boolean(byte)
        case .custom: return try scalar(byte)
        }
    }

    private mutating func list(_ field: FieldOp, level: Int) throws -> ParsedCell {
        scanner.position += 1
        let firstOpen = openItems.count
        if try !scanner.skip(UInt8(ascii: "]")) {
            path.append(.index(0))
            var index: Int32 = 0
            repeat {
                path[path.count - 1] = .index(index)
                let element = try value(field, level: level + 1)
                openItems.append(element)
                index += 1
            } while try scanner.continues(until: UInt8(ascii: "]"))
            path.removeLast()
        }
        let count = openItems.count - firstOpen
        let start = items.count
        if start == 0, firstOpen == 0 {
            // No other list is open or complete: the elements stay where they were read.
            swap(&items, &openItems)
        } else {
            unsafe items.append(contentsOf: openItems.elements[firstOpen...])
            openItems.removeLast(count)
        }
        return ParsedCell(.list, count: UInt32(count), payload: UInt64(start))
    }

    mutating func string() throws -> ParsedCell {
        let scanned = try scanner.string()
        let count = unsafe scanned.hasEscapes ? unescape(scanned, into: text + scanned.offset) : scanned.count
        return ParsedCell(.string, count: UInt32(count), payload: UInt64(scanned.offset))
    }

    private mutating func number(_ byte: UInt8) throws -> ParsedCell {
        guard byte == UInt8(ascii: "-") || byte &- 0x30 < 10 else {
            throw ParseFailure.mismatch("a number was expected")
        }
        switch try scanner.number() {
        case .int(let value): return .int(value)
        case .float(let value): return .float(value)
        case .text(let digits, let offset):
            return ParsedCell(.number, count: UInt32(digits.count), payload: UInt64(offset))
        }
    }

    /// A whole number of any size, written without fraction and exponent. One that `Int64` does not hold keeps its
    /// digits: a double would print it as no integer.
    private mutating func integer(_ byte: UInt8, else complaint: String) throws -> ParsedCell {
        let start = scanner.position
        let cell = try number(byte)
        if cell.kind == .int { return cell }
        let digits = unsafe scanner.bytes[start..<scanner.position].elements
        guard unsafe digits.allSatisfy({ $0 == UInt8(ascii: "-") || $0 &- 0x30 < 10 }) else {
            throw ParseFailure.mismatch(complaint)
        }
        // What is whole, small and no Int64 can only be -0.
        if digits.count == 2 { return .int(0) }
        return ParsedCell(.number, count: UInt32(digits.count), payload: UInt64(start))
    }

    /// An ID that was sent as a number is the same as the text of its digits.
    private mutating func wholeID(_ byte: UInt8) throws -> ParsedCell {
        var start = scanner.position
        let number = try integer(byte, else: "an ID is a string or an integer")
        // -0 is 0.
        if number.kind == .int, number.payload == 0 { start = scanner.position - 1 }
        return ParsedCell(.string, count: UInt32(scanner.position - start), payload: UInt64(start))
    }

    private mutating func boolean(_ byte: UInt8) throws -> ParsedCell {
        switch byte {
        case UInt8(ascii: "t"):
            try scanner.expectWord("true")
            return ParsedCell(.yes)
        case UInt8(ascii: "f"):
            try scanner.expectWord("false")
            return ParsedCell(.no)
        default: throw ParseFailure.mismatch("true or false was expected")
        }
    }

    /// A custom scalar: objects and lists are kept as their text.
    private mutating func scalar(_ byte: UInt8) throws -> ParsedCell {
        switch byte {
        case UInt8(ascii: "\""): return try string()
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return try boolean(byte)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let start = scanner.position
            try scanner.skipValue()
            return ParsedCell(.json, count: UInt32(scanner.position - start), payload: UInt64(start))
        default: return try number(byte)
        }
    }
}

/// The types of a response that the schema does not know, each numbered once.
///
/// Safe: a name's bytes are copied in the call that lends them.
struct UnknownTypes {
    private(set) var names: [String] = []
    private var numbers: [String: Int] = [:]

    /// The text as a type's name; nil where it is none in GraphQL's grammar (section 2.1.9). A name holds no colon, so
    /// that the cache keys of two types are never the same.
    static func name(_ text: ScannedString) -> String? {
        let bytes = unsafe text.bytes.elements
        guard let first = unsafe bytes.first, first.isNameStart, unsafe bytes.allSatisfy(\.isNameContinue) else {
            return nil
        }
        return unsafe String(decoding: bytes, as: UTF8.self)
    }

    mutating func number(of name: String) -> Int {
        if let known = numbers[name] { return known }
        numbers[name] = names.count
        names.append(name)
        return names.count - 1
    }
}
