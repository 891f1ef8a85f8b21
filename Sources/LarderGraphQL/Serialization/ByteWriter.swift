/// Writes the primitives of the serialized schema: integers in groups of seven bits, and numbers of strings that are
/// kept once each.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []
    private(set) var strings: [String] = []
    /// By bytes: strings that are equal only after Unicode normalization are two strings here.
    private var numbers: [[UInt8]: Int] = [:]

    mutating func write(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// - Parameter value: Not negative: a count, an index, an id.
    mutating func write(_ value: Int) { write(UInt64(max(value, 0))) }

    mutating func write(_ value: Int?) { write((value ?? -1) &+ 1) }

    mutating func write(_ value: Bool) { write(value ? 1 : 0) }

    mutating func write(_ string: String) {
        let bytes = Array(string.utf8)
        if let number = numbers[bytes] {
            write(number)
        } else {
            numbers[bytes] = strings.count
            write(strings.count)
            strings.append(string)
        }
    }

    mutating func write(_ strings: [String]) {
        write(strings.count)
        for string in strings { write(string) }
    }

    mutating func write(_ ids: [Int]) {
        write(ids.count)
        for id in ids { write(id) }
    }

    mutating func append(contentsOf other: some Sequence<UInt8>) { bytes.append(contentsOf: other) }
}
