import LarderGraphQL

extension ParsedResponse {
    /// Reads a GraphQL response to the plan's operation.
    ///
    /// Fields that the plan does not ask for are skipped; a field that is missing, a value of another kind than the
    /// schema says and a null where none may be are errors, and so is everything that is not JSON.
    ///
    /// - Parameter ignoresNulls: Whether the cache keeps what it knew wherever a field is null.
    /// - Complexity: O(n) in the bytes; objects whose `__typename` does not come first are looked through twice,
    ///   however deep they nest.
    package static func parse(
        _ body: [UInt8], along layout: PlanLayout, ignoresNulls: Bool = false
    ) throws(RecordError) -> ParsedResponse {
        try parse(body, along: layout, isData: false, ignoresNulls)
    }

    /// As `parse`, of what stands under `data` in a response, alone.
    package static func parse(data: [UInt8], along layout: PlanLayout) throws(RecordError) -> ParsedResponse {
        try parse(data, along: layout, isData: true, false)
    }

    private static func parse(
        _ body: [UInt8], along layout: PlanLayout, isData: Bool, _ ignoresNulls: Bool
    ) throws(RecordError) -> ParsedResponse {
        let result = unsafe body.withUnsafeBufferPointer { source -> Result<ParsedResponse, RecordError> in
            guard source.count < 1 << 31 else {
                let message = "a response of \(source.count) bytes is too large; ask for less than 2 GiB at a time"
                return .failure(RecordError(.tooLarge, message))
            }
            var parser = unsafe ResponseParser(source, layout)
            do {
                return .success(isData ? try parser.dataAlone() : try parser.response(ignoringNulls: ignoresNulls))
            } catch { return .failure(parser.explain(error)) }
        }
        return try result.get()
    }
}

/// Reads a response once, along its plan, into flat arrays.
///
/// Safe: `text` is the parser's own memory, which stays where it is; the scanner reads no other.
@safe struct ResponseParser: ~Copyable {
    let layout: PlanLayout
    /// The response's own text, and where it starts: strings are unescaped where they stand.
    private var memory: FlatBuffer<UInt8>
    let text: UnsafeMutablePointer<UInt8>
    var scanner: JSONScanner
    private var keys: [UInt8] = []
    var objects: GrowingTable<ParsedObject>
    private var entities = GrowingTable<ParsedEntity>()
    var fields: GrowingTable<ParsedField>
    var items = GrowingTable<ParsedCell>()
    private var unknownTypes = UnknownTypes()
    /// What was found while looking ahead for the `__typename` of an object.
    private var typenames = NotedTypenames()
    /// Fields of the objects, and elements of the lists, that are not complete yet.
    private var openFields: [ParsedField] = []
    var openItems = GrowingTable<ParsedCell>()
    /// By field of the plan: the object in which it was seen last.
    private var lastSeen: [Int32]
    /// The way to the value that is being read.
    var path: [PathEntry] = []

    init(_ source: UnsafeBufferPointer<UInt8>, _ layout: PlanLayout) {
        self.layout = layout
        memory = FlatBuffer(count: source.count + 1)
        unsafe memory.copy(UnsafeRawBufferPointer(source), to: 0)
        // It has a byte at least, and stays where it is for as long as it keeps its size.
        unsafe text = unsafe memory.start.unsafelyUnwrapped
        scanner = unsafe JSONScanner(text, count: source.count)
        scanner.skipByteOrderMark()
        lastSeen = Array(repeating: -1, count: layout.fields.count)
        // Guesses from real responses; they only save growing.
        objects = GrowingTable(capacity: source.count / 256)
        fields = GrowingTable(capacity: source.count / 64)
    }

    // MARK: The envelope

    mutating func response(ignoringNulls: Bool) throws -> ParsedResponse {
        var root: Int?
        var errors: [GraphQLError] = []
        var extensions: [String: Value] = [:]
        var seen: Set<String> = []
        guard try scanner.peek() == UInt8(ascii: "{") else { throw ParseFailure.notAResponse("it is no JSON object") }
        scanner.position += 1
        if try !scanner.skip(UInt8(ascii: "}")) {
            repeat {
                let keyOffset = scanner.position
                guard try scanner.peek() == UInt8(ascii: "\"") else { throw scanner.failure(.unexpectedByte) }
                let key = try scanner.text()
                guard seen.insert(key).inserted else { throw JSONError(.duplicateKey, at: keyOffset) }
                try scanner.expect(UInt8(ascii: ":"))
                switch key {
                case "data": root = try data()
                case "errors":
                    switch try scanner.value(depth: 0) {
                    case .list(let reported): errors = reported.map(GraphQLError.init)
                    case .null: break
                    default: throw ParseFailure.notAResponse("its errors are no list")
                    }
                case "extensions":
                    if case .object(let members) = try scanner.value(depth: 0) { extensions = members }
                default: try scanner.skipValue()
                }
            } while try scanner.continues(until: UInt8(ascii: "}"))
        }
        try scanner.expectEnd()
        guard seen.contains("data") || !errors.isEmpty else {
            throw ParseFailure.notAResponse("it has neither data nor errors")
        }
        return parsed(root, errors, extensions, ignoringNulls: ignoringNulls)
    }

    mutating func dataAlone() throws -> ParsedResponse {
        let root = try data()
        try scanner.expectEnd()
        return parsed(root, [], [:], ignoringNulls: false)
    }

    /// Hands over everything that was read; nothing may be read afterwards.
    private mutating func parsed(
        _ root: Int?, _ errors: [GraphQLError], _ extensions: [String: Value], ignoringNulls: Bool
    ) -> ParsedResponse {
        var text = FlatBuffer<UInt8>()
        swap(&text, &memory)
        _ = openItems.take()
        findEntities()
        var unanswered = root.map { unansweredFields(errors, from: $0) } ?? []
        if ignoringNulls {
            // That an object is not deleted is said by null, too.
            let deleted = unsafe Set(layout.cases.elements.map(\.deleted))
            for field in 0..<fields.count
            where fields[field].cell.kind == .null && !deleted.contains(fields[field].field) {
                unanswered.insert(field)
            }
        }
        return ParsedResponse(
            layout: layout, text: text, keys: FlatBuffer(keys), objects: objects.take(), entities: entities.take(),
            fields: fields.take(), items: items.take(), unknownTypes: unknownTypes.names, root: root, errors: errors,
            extensions: extensions, unanswered: unanswered)
    }

    /// Notes for each entity where it comes first in the text.
    private mutating func findEntities() {
        guard entities.count > 0 else { return }
        let all = unsafe objects.elements
        var table = EntityTable(capacity: entities.count)
        for object in all.indices where unsafe all[object].entity >= 0 {
            let first = unsafe keys.withUnsafeBytes { unsafe table.first(like: object, all, entities.elements, $0) }
            unsafe entities[Int(all[object].entity)].first = Int32(truncatingIfNeeded: first)
        }
    }

    private mutating func data() throws -> Int? {
        switch try scanner.peek() {
        case UInt8(ascii: "n"):
            try scanner.expectWord("null")
            return nil
        case UInt8(ascii: "{"): return Int(try object(layout.plan.root))
        default: throw ParseFailure.mismatch("data is neither an object nor null")
        }
    }

    // MARK: Objects

    /// Reads the object that comes next; answers its index. The recursion is as deep as the plan.
    mutating func object(_ selection: Int) throws -> Int32 {
        scanner.position += 1
        let type = try concreteType(layout.selections[selection])
        let planned = layout.cases[Int(type.caseIndex)]
        let index = Int32(objects.count)
        objects.append(
            ParsedObject(type: type.number, caseIndex: type.caseIndex, fieldStart: 0, fieldCount: 0))
        let firstOpen = openFields.count
        var visible: Int32 = 0
        var guess: Int32 = 0
        if try !scanner.skip(UInt8(ascii: "}")) {
            repeat {
                guard try scanner.peek() == UInt8(ascii: "\"") else { throw scanner.failure(.unexpectedByte) }
                let field = position(of: try key(), in: planned, guess: guess)
                try scanner.expect(UInt8(ascii: ":"))
                guard field >= 0 else {
                    try scanner.skipValue()
                    continue
                }
                path.append(.field(field))
                guard lastSeen[Int(field)] != index else { throw ParseFailure.mismatch("the field comes twice") }
                lastSeen[Int(field)] = index
                let operation = layout.fields[Int(field)]
                let cell = try value(operation, level: 0)
                if operation.content == .typename { try checkTypename(cell, type) }
                openFields.append(ParsedField(field: field, cell: cell))
                if operation.slot >= 0 { visible += 1 }
                guess = field - planned.fieldStart + 1
                path.removeLast()
            } while try scanner.continues(until: UInt8(ascii: "}"))
        }
        if visible != planned.visibleCount { try reportMissingField(planned, object: index) }
        let key = try identity(planned, type: type, fields: firstOpen)
        objects[Int(index)].fieldStart = Int32(fields.count)
        objects[Int(index)].fieldCount = Int32(openFields.count - firstOpen)
        if key.count > 0 {
            objects[Int(index)].entity = Int32(entities.count)
            entities.append(ParsedEntity(keyStart: key.start, keyCount: key.count, first: index))
        }
        fields.append(contentsOf: openFields[firstOpen...])
        openFields.removeLast(openFields.count - firstOpen)
        return index
    }

    /// A key of an object, whose quotation mark comes next, without its escapes.
    private mutating func key() throws -> ScannedString {
        var key = try scanner.string()
        if key.hasEscapes {
            let target = unsafe text + key.offset
            let bytes = unsafe LentBytes(target, count: unescape(key, into: target))
            key = ScannedString(bytes: bytes, offset: key.offset, hasEscapes: false)
        }
        return key
    }

    /// The case's field of that response key, as an index into the plan's fields, or -1.
    ///
    /// - Complexity: O(log n) in the case's fields where it is not the one guessed.
    @inline(__always)
    private func position(of key: ScannedString, in planned: CaseOp, guess: Int32) -> Int32 {
        if planned.orderStart >= 0 { return positionAmongMany(of: key, in: planned, guess: guess) }
        var candidate = guess
        for _ in 0..<planned.fieldCount {
            if candidate >= planned.fieldCount { candidate = 0 }
            let field = planned.fieldStart + candidate
            if equals(key, layout.fields[Int(field)].responseKey) { return field }
            candidate += 1
        }
        return -1
    }

    private func positionAmongMany(of key: ScannedString, in planned: CaseOp, guess: Int32) -> Int32 {
        let next = planned.fieldStart + guess
        if guess < planned.fieldCount, equals(key, layout.fields[Int(next)].responseKey) { return next }
        var (low, high) = (planned.orderStart, planned.orderStart + planned.fieldCount)
        while low < high {
            let middle = (low + high) / 2
            let field = layout.orderedFields[Int(middle)]
            let name = layout.fields[Int(field)].responseKey
            switch unsafe key.order(layout.bytes(of: name)) {
            case 0: return field
            case ..<0: high = middle
            default: low = middle + 1
            }
        }
        return -1
    }

    @inline(__always)
    private func equals(_ scanned: ScannedString, _ name: NameSpan) -> Bool {
        unsafe scanned.equals(layout.bytes(of: name))
    }

    private func reportMissingField(_ planned: CaseOp, object: Int32) throws {
        for field in planned.fieldStart..<(planned.fieldStart + planned.visibleCount)
        where lastSeen[Int(field)] != object {
            throw ParseFailure.mismatch("the field \(layout.plan.fields[Int(field)].responseKey) is missing")
        }
    }

    // MARK: Types

    /// The type of the object whose brace has been passed, and its case. Nothing is consumed.
    private mutating func concreteType(_ selection: SelectionOp) throws -> (number: Int32, caseIndex: Int32) {
        if selection.onlyType >= 0 {
            let type = layout.types[Int(selection.onlyType)]
            return (type.number, type.caseIndex)
        }
        guard let name = try typename() else {
            throw ParseFailure.schemaMismatch("the object does not say its __typename, and the schema allows several")
        }
        for index in selection.typeStart..<(selection.typeStart + selection.typeCount) {
            let type = layout.types[Int(index)]
            if equals(name, type.name) { return (type.number, type.caseIndex) }
        }
        guard let unknown = UnknownTypes.name(name) else {
            throw ParseFailure.mismatch("__typename is no name of a type")
        }
        guard selection.unknownTypeCase >= 0 else {
            throw ParseFailure.schemaMismatch(
                "The schema does not allow the type \(unknown) here, and the operation's fragments depend on it")
        }
        return (Int32(layout.typeNames.count + unknownTypes.number(of: unknown)), selection.unknownTypeCase)
    }

    /// The name of a type by its number, as `ParsedResponse.typeName` says it.
    private func typeName(_ number: Int32) -> String {
        let known = layout.typeNames.count
        return Int(number) < known ? layout.typeNames[Int(number)] : unknownTypes.names[Int(number) - known]
    }

    /// Looks ahead for the `__typename` of the object whose brace has been passed.
    private mutating func typename() throws -> ScannedString? {
        let here = scanner.position
        switch typenames.find(objectAt: scanner.position) {
        case .name(let start, let count)?:
            let place = Int(start)..<Int(start) + Int(count)
            return ScannedString(bytes: scanner.bytes[place], offset: place.lowerBound, hasEscapes: false)
        case .absent?: return nil
        case .notAString?: throw ParseFailure.mismatch("__typename is not a string")
        case nil: break
        }
        defer { scanner.position = here }
        if try scanner.skip(UInt8(ascii: "}")) { return nil }
        repeat {
            guard try scanner.peek() == UInt8(ascii: "\"") else { throw scanner.failure(.unexpectedByte) }
            let key = try scanner.string()
            try scanner.expect(UInt8(ascii: ":"))
            if NotedTypenames.isTypename(key) {
                guard try scanner.peek() == UInt8(ascii: "\"") else {
                    throw ParseFailure.mismatch("__typename is not a string")
                }
                let name = try scanner.string()
                // GraphQL names are ASCII: a name with an escape is none that the schema could know.
                return name.hasEscapes ? nil : name
            }
            try scanner.skipValue(noting: &typenames)
        } while try scanner.continues(until: UInt8(ascii: "}"))
        return nil
    }

    /// An alias of `__typename`, or a type that can only be one, must tell the same as was found.
    private func checkTypename(_ cell: ParsedCell, _ type: (number: Int32, caseIndex: Int32)) throws {
        let name = typeName(type.number)
        let isSame =
            unsafe cell.kind == .string && Int(cell.count) == name.utf8.count
            && name.utf8.elementsEqual(UnsafeBufferPointer(start: text + cell.offset, count: Int(cell.count)))
        guard isSame else { throw ParseFailure.schemaMismatch("the object is not of the type \(name)") }
    }

    // MARK: Identity

    /// Writes the cache key of the object whose fields are open from `first` on.
    private mutating func identity(
        _ planned: CaseOp, type: (number: Int32, caseIndex: Int32), fields first: Int
    ) throws -> (start: Int32, count: Int32) {
        guard planned.keyCount > 0 else { return (0, 0) }
        let start = keys.count
        keys.append(contentsOf: typeName(type.number).utf8)
        keys.append(UInt8(ascii: ":"))
        if planned.keyCount > 1 { keys.append(UInt8(ascii: "{")) }
        for position in 0..<planned.keyCount {
            let wanted = layout.keyFields[Int(planned.keyStart + position)]
            guard let field = openFields[first...].first(where: { $0.field == wanted }) else {
                keys.removeLast(keys.count - start)
                return (0, 0)
            }
            if planned.keyCount > 1 {
                if position > 0 { keys.append(UInt8(ascii: ",")) }
                appendJSONString(layout.plan.fields[Int(wanted)].name, to: &keys)
                keys.append(UInt8(ascii: ":"))
            }
            guard appendKeyPart(field.cell, quoted: planned.keyCount > 1) else {
                keys.removeLast(keys.count - start)
                return (0, 0)
            }
        }
        if planned.keyCount > 1 { keys.append(UInt8(ascii: "}")) }
        // Names of types come to what the response has itself: it may be short enough where its keys are not.
        guard keys.count < 1 << 31 else {
            throw RecordError(.tooLarge, "The cache keys of the response take 2 GiB or more; ask for less at a time")
        }
        return (Int32(start), Int32(keys.count - start))
    }

    /// False where the value identifies nothing: null, or no scalar. `1` and `"1"` are the same.
    private mutating func appendKeyPart(_ cell: ParsedCell, quoted: Bool) -> Bool {
        switch cell.kind {
        case .string, .number:
            let part = unsafe UnsafeBufferPointer(start: UnsafePointer(text) + cell.offset, count: Int(cell.count))
            if quoted { unsafe appendJSONString(part, to: &keys) } else { unsafe keys.append(contentsOf: part) }
        case .int, .float, .no, .yes:
            let part =
                switch cell.kind {
                case .int: String(Int64(bitPattern: cell.payload))
                case .float: Double(bitPattern: cell.payload).description
                default: cell.kind == .yes ? "true" : "false"
                }
            if quoted { appendJSONString(part, to: &keys) } else { keys.append(contentsOf: part.utf8) }
        case .absent, .null, .json, .list, .object: return false
        }
        return true
    }
}
