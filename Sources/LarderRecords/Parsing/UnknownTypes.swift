import LarderGraphQL

/// The types of a response that the schema does not know, each numbered once.
struct UnknownTypes {
    private(set) var names: [String] = []
    private var numbers: [String: Int] = [:]

    /// The text as a type's name; nil where it is none in GraphQL's grammar (section 2.1.9). A name holds no colon, so
    /// that the cache keys of two types are never the same.
    static func name(_ text: ScannedString) -> String? {
        let bytes = UnsafeBufferPointer(start: text.start, count: text.count)
        guard let first = bytes.first, first.isNameStart, bytes.allSatisfy(\.isNameContinue) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    mutating func number(of name: String) -> Int {
        if let known = numbers[name] { return known }
        numbers[name] = names.count
        names.append(name)
        return names.count - 1
    }
}
