import LarderGraphQL

/// The fields of one object, in the order in which they are answered. Names are told apart by their bytes.
///
/// Safe: `text` and `ends` never change. Bytes are compared within the closures that lend them, once both names are
/// found to be of the same length.
final class ObjectShape: Sendable {
    let names: [String]
    /// `"name":`, escaped, for each field.
    let jsonNames: [[UInt8]]
    /// By field: of its name.
    let nameHashes: [UInt64]
    /// The names' UTF-8, one after the other, and where each ends.
    private let text: [UInt8]
    private let ends: [Int]
    /// For objects of many fields only: one more than where each field stands, at the hash of its name or at the first
    /// free place behind it; at most half of the places are taken.
    private let index: [UInt32]

    init(_ names: [String]) {
        self.names = names
        jsonNames = names.map { name in
            var bytes: [UInt8] = []
            appendJSONString(name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            return bytes
        }
        var text: [UInt8] = []
        ends = names.map { name in
            text.append(contentsOf: name.utf8)
            return text.count
        }
        self.text = text
        let keyed = KeyedHash.ofProcess
        nameHashes = names.map { keyed.hash($0) }
        index = names.count <= 8 ? [] : Self.index(names)
    }

    private static func index(_ names: [String]) -> [UInt32] {
        var size = 32
        while size < names.count * 2 { size *= 2 }
        var index = [UInt32](repeating: 0, count: size)
        for (position, name) in names.enumerated() {
            var name = name
            var place = name.withUTF8 { unsafe hash($0) } & (size - 1)
            while index[place] != 0 { place = (place + 1) & (size - 1) }
            index[place] = UInt32(truncatingIfNeeded: position + 1)
        }
        return index
    }

    /// Of the length, the first eight bytes and the last eight.
    @inline(__always)
    private static func hash(_ name: UnsafeBufferPointer<UInt8>) -> Int {
        let bytes = UnsafeRawBufferPointer(name)
        let odd: UInt64 = 0x9e37_79b9_7f4a_7c15
        var hash = UInt64(truncatingIfNeeded: bytes.count)
        if bytes.count >= 8 {
            unsafe hash ^= bytes.loadUnaligned(as: UInt64.self)
            hash = (hash ^ hash >> 29) &* odd
            unsafe hash ^= bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
        } else {
            for place in bytes.indices { unsafe hash = hash << 8 ^ UInt64(bytes[place]) }
        }
        return Int(truncatingIfNeeded: (hash &* odd) >> 33)
    }

    /// Where the field stands. It is looked for from `guess` on.
    func position(of name: String, guess: Int = 0) -> Int? {
        let found = unsafe name.utf8.withContiguousStorageIfAvailable { unsafe position(of: $0, guess: guess) }
        if let found { return found }
        // Bridged strings have no storage of their own.
        return unsafe Array(name.utf8).withUnsafeBufferPointer { unsafe position(of: $0, guess: guess) }
    }

    @inline(__always)
    private func position(of name: UnsafeBufferPointer<UInt8>, guess: Int) -> Int? {
        let start = guess < names.count ? guess : 0
        if start < names.count, unsafe isName(start, name) { return start }
        if start + 1 < names.count, unsafe isName(start + 1, name) { return start + 1 }
        if index.isEmpty { return names.indices.first { unsafe isName($0, name) } }
        var place = unsafe Self.hash(name) & (index.count - 1)
        while index[place] != 0 {
            let position = Int(index[place]) - 1
            if unsafe isName(position, name) { return position }
            place = (place + 1) & (index.count - 1)
        }
        return nil
    }

    @inline(__always)
    private func isName(_ position: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let start = position == 0 ? 0 : ends[position - 1]
        guard ends[position] - start == name.count else { return false }
        guard let bytes = name.baseAddress else { return true }
        return unsafe text.withUnsafeBytes { text in
            unsafe text.baseAddress.map { unsafe hasSameBytes($0 + start, bytes, count: name.count) } ?? true
        }
    }
}

/// The shapes that the objects of a response refer to by number. A plan's responses share one table.
final class ShapeTable: Sendable {
    let shapes: [ObjectShape]
    init(_ shapes: [ObjectShape]) { self.shapes = shapes }
    static let empty = ShapeTable([])
}
