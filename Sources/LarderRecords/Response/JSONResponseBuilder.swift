extension Response {
    /// Makes a response whose data is what a JSON text says, without errors and complete.
    ///
    /// Objects with the same key twice are refused, and so is what is nested deeper than 128 levels.
    ///
    /// - Complexity: O(n) in the bytes.
    public init(json: [UInt8]) throws(JSONError) {
        // Safe: `parsed` copies what it reads, within the closure that lends the bytes.
        let result = unsafe json.withUnsafeBufferPointer { text -> Result<ResponseBuffer, JSONError> in
            do throws(JSONError) {
                return unsafe .success(try ResponseBuffer.parsed(text, .refuse))
            } catch { return .failure(error) }
        }
        self.init(buffer: try result.get())
    }
}

/// Safe: the builder and its scanner are gone before the call returns for which the text is lent.
extension ResponseBuffer {
    /// What becomes of an object with the same key twice, and of what is nested too deep.
    enum Unreadable {
        case refuse
        /// It stays text, as a custom scalar's is: for text that was kept before without a look inside.
        case keepText
    }

    /// - Parameter text: Is read and copied during the call only.
    static func parsed(
        _ text: UnsafeBufferPointer<UInt8>, _ unreadable: Unreadable
    ) throws(JSONError) -> ResponseBuffer {
        // Counts and offsets are of 32 bits here and there.
        guard text.count < 1 << 31 else { throw JSONError(.tooLarge, at: 1 << 31) }
        guard let start = text.baseAddress else { throw JSONError(.unexpectedEnd, at: 0) }
        var builder = unsafe JSONResponseBuilder(JSONScanner(start, count: text.count), unreadable)
        try builder.run()
        return builder.finish()
    }
}

/// Builds a response from JSON of which nothing is known: shapes are made for the objects as they come.
///
/// Safe: the text is lent for as long as it lives, and is copied. What is unescaped has the room of what it was, and a
/// shape's names are read at the lengths that `name` has put before them.
private struct JSONResponseBuilder: ~Copyable {
    private var scanner: JSONScanner
    private let unreadable: ResponseBuffer.Unreadable
    private var builder: ResponseBuilder
    private var shapes: [ObjectShape] = []
    /// Shapes by their names, each with its length before it.
    private var known: [[UInt8]: UInt32] = [:]
    /// Values, names and places of names of the objects and lists that are not complete yet.
    private var openCells: [ResponseCell] = []
    private var openNames: [UInt8] = []
    private var openOffsets: [Int] = []

    init(_ scanner: JSONScanner, _ unreadable: ResponseBuffer.Unreadable) {
        self.scanner = scanner
        self.unreadable = unreadable
        // About what JSON becomes here; a wrong guess costs a move.
        builder = ResponseBuilder(capacity: scanner.end / 2 * 3)
    }

    mutating func run() throws(JSONError) {
        scanner.skipByteOrderMark()
        let root = try value(depth: 0)
        builder.store(root, at: 0)
        try scanner.expectEnd()
    }

    consuming func finish() -> ResponseBuffer { builder.finish(shapes: ShapeTable(shapes)) }

    /// Reads the next value. The recursion ends at `maximumDepth`.
    private mutating func value(depth: Int) throws(JSONError) -> ResponseCell {
        switch try scanner.peek() {
        case UInt8(ascii: "{"), UInt8(ascii: "["): return try container(depth: depth)
        case UInt8(ascii: "\""):
            let scanned = try scanner.string()
            guard scanned.hasEscapes else { return try text(.string, scanned.bytes) }
            do throws(ResponseTooLarge) {
                return unsafe try builder.appendText(.string, upTo: scanned.count) {
                    unsafe unescape(scanned, into: $0)
                }
            } catch { throw scanner.failure(.tooLarge) }
        case UInt8(ascii: "n"):
            try scanner.expectWord("null")
            return ResponseCell(.null)
        case UInt8(ascii: "t"):
            try scanner.expectWord("true")
            return ResponseCell(.yes)
        case UInt8(ascii: "f"):
            try scanner.expectWord("false")
            return ResponseCell(.no)
        default:
            switch try scanner.number() {
            case .int(let value): return .int(value)
            case .float(let value): return .float(value)
            case .text(let digits, _): return try text(.number, digits)
            }
        }
    }

    private mutating func text(_ kind: CellKind, _ bytes: LentBytes) throws(JSONError) -> ResponseCell {
        do throws(ResponseTooLarge) {
            return unsafe try builder.appendText(kind, UnsafeRawBufferPointer(bytes.elements))
        } catch {
            throw scanner.failure(.tooLarge)
        }
    }

    private mutating func container(depth: Int) throws(JSONError) -> ResponseCell {
        let start = scanner.position
        let (cells, names, offsets) = (openCells.count, openNames.count, openOffsets.count)
        do throws(JSONError) {
            guard depth < JSONScanner.maximumDepth else { throw scanner.failure(.nestedTooDeep) }
            return scanner.bytes[start] == UInt8(ascii: "{") ? try object(depth: depth) : try list(depth: depth)
        } catch {
            guard unreadable == .keepText, error.reason == .duplicateKey || error.reason == .nestedTooDeep else {
                throw error
            }
            openCells.removeLast(openCells.count - cells)
            openNames.removeLast(openNames.count - names)
            openOffsets.removeLast(openOffsets.count - offsets)
            scanner.position = start
            try scanner.skipValue()
            return try text(.json, scanner.bytes[start..<scanner.position])
        }
    }

    private mutating func list(depth: Int) throws(JSONError) -> ResponseCell {
        let first = openCells.count
        scanner.position += 1
        if try !scanner.skip(UInt8(ascii: "]")) {
            repeat {
                let element = try value(depth: depth + 1)
                openCells.append(element)
            } while try scanner.continues(until: UInt8(ascii: "]"))
        }
        let count = UInt32(truncatingIfNeeded: openCells.count - first)
        return ResponseCell(.list, count: count, payload: try closeCells(from: first))
    }

    private mutating func object(depth: Int) throws(JSONError) -> ResponseCell {
        let (first, firstName, firstOffset) = (openCells.count, openNames.count, openOffsets.count)
        scanner.position += 1
        if try !scanner.skip(UInt8(ascii: "}")) {
            repeat {
                try name()
                try scanner.expect(UInt8(ascii: ":"))
                let member = try value(depth: depth + 1)
                openCells.append(member)
            } while try scanner.continues(until: UInt8(ascii: "}"))
        }
        let shape = try shape(of: Array(openNames[firstName...]), offsets: openOffsets[firstOffset...])
        openNames.removeLast(openNames.count - firstName)
        openOffsets.removeLast(openOffsets.count - firstOffset)
        return ResponseCell(.object, count: shape, payload: try closeCells(from: first))
    }

    /// Notes the next name, whose quotation mark should come next.
    private mutating func name() throws(JSONError) {
        guard try scanner.peek() == UInt8(ascii: "\"") else { throw scanner.failure(.unexpectedByte) }
        openOffsets.append(scanner.position)
        let scanned = try scanner.string()
        var bytes = unsafe scanned.bytes.elements
        var unescaped: [UInt8] = []
        if scanned.hasEscapes {
            unescaped = unsafe [UInt8](unsafeUninitializedCapacity: scanned.count) { buffer, count in
                count = unsafe buffer.baseAddress.map { unsafe unescape(scanned, into: $0) } ?? 0
            }
            unsafe bytes = unsafe UnsafeBufferPointer(start: nil, count: 0)
        }
        let count = bytes.count + unescaped.count
        unsafe withUnsafeBytes(of: UInt32(truncatingIfNeeded: count)) { unsafe openNames.append(contentsOf: $0) }
        unsafe openNames.append(contentsOf: bytes)
        openNames.append(contentsOf: unescaped)
    }

    private mutating func shape(of key: [UInt8], offsets: ArraySlice<Int>) throws(JSONError) -> UInt32 {
        if let shape = known[key] { return shape }
        var names: [String] = []
        // As bytes: names that only look alike are different names.
        var seen: Set<[UInt8]> = []
        var position = 0
        for offset in offsets {
            let count = unsafe Int(
                key.withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: position, as: UInt32.self) })
            let bytes = key[(position + 4)..<(position + 4 + count)]
            guard seen.insert(Array(bytes)).inserted else { throw JSONError(.duplicateKey, at: offset) }
            names.append(String(decoding: bytes, as: UTF8.self))
            position += 4 + count
        }
        let shape = UInt32(truncatingIfNeeded: shapes.count)
        shapes.append(ObjectShape(names))
        known[key] = shape
        return shape
    }

    /// Moves the values that belong to one object or list to where they stay.
    private mutating func closeCells(from first: Int) throws(JSONError) -> UInt64 {
        let block: Int
        do throws(ResponseTooLarge) { block = try builder.appendCells(openCells.count - first) } catch {
            throw scanner.failure(.tooLarge)
        }
        for index in first..<openCells.count {
            builder.store(openCells[index], at: block + (index - first) * ResponseCell.size)
        }
        openCells.removeLast(openCells.count - first)
        return UInt64(block)
    }
}
