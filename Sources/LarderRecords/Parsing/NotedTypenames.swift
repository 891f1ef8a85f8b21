/// The `__typename` of each object that was passed over while another's was looked for.
///
/// Where `__typename` comes last in objects that nest, each would be looked through once for every object around it.
/// What is passed over is therefore noted, and found when the parser comes to it: each byte is looked through once.
///
/// Safe: the word that a key is compared with is a part of the program.
struct NotedTypenames {
    enum Finding {
        /// At an offset in the text.
        case name(start: Int32, count: Int32)
        /// The object does not say it, or by a string with an escape, which no name of a type has.
        case absent
        case notAString
    }

    private struct Entry {
        /// Where the object's content begins, past its brace.
        var object: Int32
        var finding: Finding
    }

    /// In the order of the text.
    private var entries: [Entry] = []
    /// The parser asks in the order of the text: nothing before this is asked for again.
    private var next = 0

    static func isTypename(_ key: ScannedString) -> Bool {
        let wanted: StaticString = "__typename"
        return wanted.withUTF8Buffer { unsafe key.equals($0) }
    }

    /// What was noted of an object; nil where it has not been passed over.
    ///
    /// - Parameter offset: Where its content begins, past its brace.
    mutating func find(objectAt offset: Int) -> Finding? {
        while next < entries.count, Int(entries[next].object) < offset { next += 1 }
        guard next < entries.count, Int(entries[next].object) == offset else { return nil }
        return entries[next].finding
    }

    /// Notes an object, of which nothing is known yet; answers its number.
    fileprivate mutating func add(objectAt offset: Int) -> Int {
        if next == entries.count {
            entries.removeAll(keepingCapacity: true)
            next = 0
        }
        entries.append(Entry(object: Int32(truncatingIfNeeded: offset), finding: .absent))
        return entries.count - 1
    }

    fileprivate mutating func set(_ finding: Finding, of number: Int) { entries[number].finding = finding }
}

extension JSONScanner {
    /// Passes over one value of any kind as `skipValue` does, and notes the objects in it.
    mutating func skipValue(noting typenames: inout NotedTypenames) throws(JSONError) {
        let first = try peek()
        guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return try skipValue() }
        // The open objects by their numbers, and -1 for a list.
        var levels: [Int] = []
        repeat {
            switch try peek() {
            case UInt8(ascii: "{"):
                position += 1
                let number = typenames.add(objectAt: position)
                if try !skip(UInt8(ascii: "}")) {
                    guard levels.count < Self.maximumSkippedDepth else { throw failure(.nestedTooDeep) }
                    levels.append(number)
                    try skipKey(of: number, &typenames)
                    continue
                }
            case UInt8(ascii: "["):
                position += 1
                if try !skip(UInt8(ascii: "]")) {
                    guard levels.count < Self.maximumSkippedDepth else { throw failure(.nestedTooDeep) }
                    levels.append(-1)
                    continue
                }
            default: try skipValue()
            }
            while let number = levels.last {
                if try continues(until: number >= 0 ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    if number >= 0 { try skipKey(of: number, &typenames) }
                    break
                }
                levels.removeLast()
            }
        } while !levels.isEmpty
    }

    /// Passes over a key, and notes the value where it is the `__typename` of the object with this number.
    private mutating func skipKey(of number: Int, _ typenames: inout NotedTypenames) throws(JSONError) {
        guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
        let key = try string()
        try expect(UInt8(ascii: ":"))
        guard NotedTypenames.isTypename(key) else { return }
        let value = position
        defer { position = value }
        guard try peek() == UInt8(ascii: "\"") else { return typenames.set(.notAString, of: number) }
        let name = try string()
        guard !name.hasEscapes else { return }
        typenames.set(
            .name(start: Int32(truncatingIfNeeded: name.offset), count: Int32(truncatingIfNeeded: name.count)),
            of: number)
    }
}
