/// Reads what a ``ByteWriter`` wrote. Every read is checked against the end, and every count against what is left, so
/// that damaged bytes are an error and never a trap or a huge allocation.
struct ByteReader {
    private let bytes: [UInt8]
    private(set) var position: Int
    private var strings: [String] = []

    init(_ bytes: [UInt8], from position: Int) {
        self.bytes = bytes
        self.position = position
    }

    var isAtEnd: Bool { position >= bytes.count }

    static var damaged: SchemaError { SchemaError(.serializedForm, "The serialized schema is damaged") }

    mutating func readUInt64() throws(SchemaError) -> UInt64 {
        // Most numbers are small.
        if position < bytes.count, bytes[position] < 0x80 {
            position += 1
            return UInt64(bytes[position - 1])
        }
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw Self.damaged
    }

    mutating func readInt() throws(SchemaError) -> Int {
        guard let value = Int(exactly: try readUInt64()) else { throw Self.damaged }
        return value
    }

    mutating func readOptionalInt() throws(SchemaError) -> Int? {
        let value = try readInt()
        return value == 0 ? nil : value - 1
    }

    mutating func readBool() throws(SchemaError) -> Bool {
        switch try readUInt64() {
        case 0: return false
        case 1: return true
        default: throw Self.damaged
        }
    }

    /// A count of elements that take one byte each at least.
    mutating func readCount() throws(SchemaError) -> Int {
        let count = try readInt()
        guard count <= bytes.count - position else { throw Self.damaged }
        return count
    }

    /// An index below `end`.
    mutating func readIndex(below end: Int) throws(SchemaError) -> Int {
        let index = try readInt()
        guard index < end else { throw Self.damaged }
        return index
    }

    mutating func readString() throws(SchemaError) -> String {
        strings[try readIndex(below: strings.count)]
    }

    mutating func readStrings() throws(SchemaError) -> [String] {
        let count = try readCount()
        var result: [String] = []
        result.reserveCapacity(count)
        for _ in 0..<count { result.append(try readString()) }
        return result
    }

    mutating func readIndices(below end: Int) throws(SchemaError) -> [Int] {
        let count = try readCount()
        var result: [Int] = []
        result.reserveCapacity(count)
        for _ in 0..<count { result.append(try readIndex(below: end)) }
        return result
    }

    /// Reads the table that ``readString()`` looks into.
    mutating func readStringTable() throws(SchemaError) {
        let count = try readCount()
        strings.reserveCapacity(count)
        for _ in 0..<count {
            let length = try readCount()
            // Validated and not trusted: the bytes may come from anywhere.
            guard let string = String(validating: bytes[position..<position + length], as: UTF8.self) else {
                throw Self.damaged
            }
            strings.append(string)
            position += length
        }
    }
}
