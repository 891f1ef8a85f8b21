public import LarderGraphQL

extension Value {
    /// Reads one JSON value from UTF-8, which nothing may follow.
    ///
    /// An object with the same key twice is refused: of two variables of one name neither can be meant.
    public init(json: [UInt8]) throws(JSONError) {
        var bytes = json
        // Safe: the scanner is gone when the closure returns that lends it the bytes, and what it read is copied.
        let result = unsafe bytes.withUnsafeMutableBufferPointer { buffer -> Result<Value, JSONError> in
            // An empty array may have no memory.
            guard let start = buffer.baseAddress else { return .failure(JSONError(.unexpectedEnd, at: 0)) }
            do throws(JSONError) {
                var scanner = unsafe JSONScanner(start, count: buffer.count)
                scanner.skipByteOrderMark()
                let value = try scanner.value(depth: 0)
                try scanner.expectEnd()
                return .success(value)
            } catch { return .failure(error) }
        }
        self = try result.get()
    }

    /// The value as JSON in UTF-8, keys in ascending order.
    public var json: [UInt8] {
        var bytes: [UInt8] = []
        appendJSON(to: &bytes)
        return bytes
    }

    func appendJSON(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .boolean(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .int(let value): bytes.append(contentsOf: String(value).utf8)
        case .float(let value):
            // JSON has no infinities; GraphQL has neither.
            if value.isFinite { appendJSONNumber(value, to: &bytes) } else { bytes.append(contentsOf: "null".utf8) }
        case .number(let text): bytes.append(contentsOf: text.utf8)
        case .string(let text): appendJSONString(text, to: &bytes)
        case .list(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.appendJSON(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                appendJSONString(member.key, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.appendJSON(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}

extension JSONScanner {
    /// Reads the next value whole. The recursion ends at `maximumDepth`.
    mutating func value(depth: Int) throws(JSONError) -> Value {
        guard depth < Self.maximumDepth else { throw failure(.nestedTooDeep) }
        switch try peek() {
        case UInt8(ascii: "{"):
            position += 1
            var members: [String: Value] = [:]
            if try skip(UInt8(ascii: "}")) { return .object(members) }
            repeat {
                guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
                let keyOffset = position
                let key = try text()
                try expect(UInt8(ascii: ":"))
                guard members.updateValue(try value(depth: depth + 1), forKey: key) == nil else {
                    throw JSONError(.duplicateKey, at: keyOffset)
                }
            } while try continues(until: UInt8(ascii: "}"))
            return .object(members)
        case UInt8(ascii: "["):
            position += 1
            var elements: [Value] = []
            if try skip(UInt8(ascii: "]")) { return .list(elements) }
            repeat { elements.append(try value(depth: depth + 1)) } while try continues(until: UInt8(ascii: "]"))
            return .list(elements)
        case UInt8(ascii: "\""): return .string(try text())
        case UInt8(ascii: "n"):
            try expectWord("null")
            return .null
        case UInt8(ascii: "t"):
            try expectWord("true")
            return .boolean(true)
        case UInt8(ascii: "f"):
            try expectWord("false")
            return .boolean(false)
        default:
            switch try number() {
            case .int(let value): return .int(value)
            case .float(let value): return .float(value)
            case .text(let digits, _): return .number(digits.text)
            }
        }
    }

    /// Reads a string, whose quotation mark comes next.
    mutating func text() throws(JSONError) -> String {
        let scanned = try string()
        guard scanned.hasEscapes else { return scanned.bytes.text }
        // Safe: there is room for `scanned.count` bytes, and unescaping makes no more.
        return unsafe String(unsafeUninitializedCapacity: scanned.count) { buffer in
            guard let target = buffer.baseAddress else { return 0 }
            return unsafe unescape(scanned, into: target)
        }
    }
}

extension Value {
    /// The text of an id that came as JSON: of a string, or the digits of a whole number of any size. Nil for what
    /// identifies nothing, and for a number that has, or may have had, a fraction or an exponent.
    package var idText: String? {
        switch self {
        case .string(let text): text
        case .int(let number): String(number)
        case .number(let text): text.utf8.allSatisfy { $0 == UInt8(ascii: "-") || $0 &- 0x30 < 10 } ? text : nil
        // Digits that a double keeps, and no `Int64`.
        case .float(let number): abs(number) >= 0x1p63 ? DecimalDigits(number.description).whole : nil
        case .boolean, .null, .list, .object: nil
        }
    }
}

extension Value: CustomStringConvertible {
    /// The value as JSON, keys in ascending order.
    public var description: String { String(decoding: json, as: UTF8.self) }
}
