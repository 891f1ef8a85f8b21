import LarderGraphQL

/// The fields of one object, in the order in which they are answered. Names are told apart by their bytes.
///
/// Safe: `text` and `ends` never change. Bytes are compared within the closures that lend them, once both names are
/// found to be of the same length.
final class ObjectShape: Sendable {
    let names: [String]
    /// `"name":`, escaped, for each field.
    let jsonNames: [[UInt8]]
    /// The names' UTF-8, one after the other, and where each ends.
    private let text: [UInt8]
    private let ends: [Int]
    /// For objects of many fields only.
    private let index: [[UInt8]: Int]

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
        index =
            names.count <= 8
            ? [:]
            : Dictionary(
                names.enumerated().map { (Array($1.utf8), $0) }, uniquingKeysWith: { first, _ in first })
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
        guard index.isEmpty else { return unsafe index[Array(name)] }
        return names.indices.first { unsafe isName($0, name) }
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
