import LarderGraphQL

/// The ways in which the text of arguments can be read; two are as many as must be found.
struct ArgumentReadings {
    typealias Text = ArraySlice<UInt8>

    let schema: SchemaIndex
    let style: KeyStyle
    /// Set where the search was given up.
    private(set) var isExhausted = false
    private var steps = 0
    private static let stepLimit = 20_000
    private static let depthLimit = 50
    /// Stands for whatever prints in a form that is not read: such a reading counts, so that no other is taken for the
    /// only one. No value that is read is a number in text.
    static let unknown = Value.number("?")

    init(schema: SchemaIndex, style: KeyStyle) {
        self.schema = schema
        self.style = style
    }

    /// Arguments, or the fields of an input object.
    ///
    /// - Parameters:
    ///   - inputs: In ascending order of their names.
    ///   - start: The index of the first input to read. The inputs before it have had their turn.
    mutating func items(
        _ text: Text, _ inputs: [InputDefinition], from start: Int = 0, depth: Int = 0
    ) -> Set<[String: Value]> {
        guard step(depth) else { return [] }
        if text.isEmpty { return start == 0 && !inputs.contains(where: \.isRequired) ? [[:]] : [] }
        var found: Set<[String: Value]> = []
        for index in start..<inputs.count {
            let input = inputs[index]
            for (value, rest) in candidates(text, input, depth) {
                let others: Set<[String: Value]>
                if rest.isEmpty {
                    others = inputs[(index + 1)...].contains(where: \.isRequired) ? [] : [[:]]
                } else {
                    others = items(rest.dropFirst(), inputs, from: index + 1, depth: depth)
                }
                for other in others {
                    found.insert(other.merging([input.name: value]) { _, new in new })
                    if found.count > 1 { return found }
                }
            }
            // One that must be there cannot be passed over.
            if input.isRequired { break }
        }
        return found
    }

    /// The values that an input can have at the beginning of a text, each with the rest: nothing, or what begins with a
    /// comma.
    private mutating func candidates(
        _ text: Text, _ input: InputDefinition, _ depth: Int
    ) -> [(value: Value, rest: Text)] {
        var found: [(value: Value, rest: Text)] = []
        let name = Array(input.name.utf8) + [UInt8(ascii: ":")]
        if text.starts(with: name) {
            let content = text.dropFirst(name.count)
            for end in ends(of: content) {
                guard step(depth) else { return found }
                for value in values(content[..<end], input.type, depth + 1) { found.append((value, content[end...])) }
            }
        }
        if text.starts(with: [UInt8(ascii: "[")] + name), !input.type.isList,
            schema.types[input.type.named].kind == .inputObject
        {
            let content = text.dropFirst(name.count + 1)
            let fields = sorted(schema.types[input.type.named].inputFields)
            for end in ends(of: content) where end > content.startIndex {
                guard content[end - 1] == UInt8(ascii: "]") else { continue }
                for object in items(content[..<(end - 1)], fields, depth: depth + 1) {
                    found.append((.object(object), content[end...]))
                }
            }
        }
        return found
    }

    /// Where a value may end: before a comma, or with the text.
    private func ends(of text: Text) -> [Int] {
        text.indices.filter { text[$0] == UInt8(ascii: ",") } + [text.endIndex]
    }

    /// A value that is no input object.
    private mutating func values(_ text: Text, _ type: ResolvedType, _ depth: Int) -> Set<Value> {
        var found: Set<Value> = []
        if style.printsNull, !type.isNonNull, text.elementsEqual("null".utf8) { found.insert(.null) }
        found.formUnion(type.isList ? list(text, type, depth) : scalars(text, schema.types[type.named]))
        if found.isEmpty, mayBeUnread(text, type) { found.insert(Self.unknown) }
        return found
    }

    /// Whether a value of the type may print so, although it cannot be read: a list or an object in another form, null
    /// and optionals as Swift and Foundation describe them, an enum's value that is newer than the schema.
    private func mayBeUnread(_ text: Text, _ type: ResolvedType) -> Bool {
        let kind = schema.types[type.named].kind
        if type.isList || kind == .inputObject { return true }
        if let first = text.first, "[{(<".utf8.contains(first) { return true }
        if text.starts(with: "Optional(".utf8) || text.elementsEqual("nil".utf8) { return true }
        return kind == .enumeration
            && text.allSatisfy {
                ($0 | 0x20) &- UInt8(ascii: "a") < 26 || $0 &- 0x30 < 10 || $0 == UInt8(ascii: "_")
            }
    }

    private mutating func list(_ text: Text, _ type: ResolvedType, _ depth: Int) -> Set<Value> {
        guard let element = type.element, !element.isList, text.count >= 2, text.first == UInt8(ascii: "["),
            text.last == UInt8(ascii: "]")
        else { return [] }
        let content = text.dropFirst().dropLast()
        let named = schema.types[element.named]
        // Nothing inside: no element, or one that prints as nothing.
        var found: Set<Value> = content.isEmpty ? [.list([])] : []
        if named.kind == .inputObject {
            guard style.printsObjectsInLists else { return found }
            return found.union(objects(content, sorted(named.inputFields), depth + 1).map(Value.list))
        }
        if let strings = quotedStrings(content) {
            found.formUnion(combinations(strings.map { scalars(ArraySlice($0.utf8), named) }))
        }
        let pieces = separated(content)
        let isText = named.kind == .scalar && !["Int", "Float", "Boolean"].contains(named.name)
        if !isText {
            found.formUnion(combinations(pieces.map { elements($0, element) }))
        } else if style.printsPlainStrings {
            found.formUnion(combinations(pieces.map { elements($0, element) }))
            // A comma and a space may as well be part of a text.
            if pieces.count > 1 { found.formUnion(combinations([elements(content, element)])) }
        }
        return found
    }

    /// An element of a list. Null is as Foundation prints it there.
    private func elements(_ text: Text, _ type: ResolvedType) -> Set<Value> {
        let values = scalars(text, schema.types[type.named])
        return !type.isNonNull && text.elementsEqual("<null>".utf8) ? values.union([.null]) : values
    }

    /// Input objects one after the other, without a mark between them: one ends where the next key is not greater, or
    /// earlier.
    private mutating func objects(_ text: Text, _ fields: [InputDefinition], _ depth: Int) -> [[Value]] {
        guard step(depth) else { return [] }
        var found: [[Value]] = []
        for end in ends(of: text) {
            let first = items(text[..<end], fields, depth: depth)
            guard !first.isEmpty else { continue }
            let rests = end == text.endIndex ? [[]] : objects(text[(end + 1)...], fields, depth + 1)
            for object in first {
                for rest in rests {
                    found.append([.object(object)] + rest)
                    if found.count > 1 { return found }
                }
            }
        }
        return found
    }

    /// The first two lists that take one value from each set.
    private func combinations(_ sets: [Set<Value>]) -> Set<Value> {
        guard sets.allSatisfy({ !$0.isEmpty }) else { return [] }
        let first = sets.compactMap(\.first)
        guard let index = sets.firstIndex(where: { $0.count > 1 }),
            let other = sets[index].first(where: { $0 != first[index] })
        else { return [.list(first)] }
        var second = first
        second[index] = other
        return [.list(first), .list(second)]
    }

    private func separated(_ text: Text) -> [Text] {
        var pieces: [Text] = []
        var start = text.startIndex
        var index = text.startIndex
        while index + 1 < text.endIndex {
            if text[index] == UInt8(ascii: ","), text[index + 1] == UInt8(ascii: " ") {
                pieces.append(text[start..<index])
                start = index + 2
                index += 2
            } else {
                index += 1
            }
        }
        return pieces + [text[start...]]
    }

    /// False once too much was tried.
    private mutating func step(_ depth: Int) -> Bool {
        steps += 1
        if steps > Self.stepLimit || depth > Self.depthLimit { isExhausted = true }
        return !isExhausted
    }
}
