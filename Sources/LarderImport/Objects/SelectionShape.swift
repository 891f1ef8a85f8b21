import LarderGraphQL

/// What a document selects so that an answer to it has some values, all of which stand in one place: one, or the
/// elements of a list.
///
/// An answer must have all that is selected: of the elements of one type, what all of them have is selected.
struct SelectionShape {
    struct Member {
        var responseKey: String
        var selection: ExactText
        /// Nil for scalars and enums.
        var shape: SelectionShape?
    }

    /// By type, in ascending order of their names.
    private(set) var cases: [(type: SchemaIndex.TypeID, members: [Member])] = []
    /// The fields that only some elements have.
    private(set) var uneven: [String] = []
    let schema: SchemaIndex

    init(_ objects: [TakenObject], _ schema: SchemaIndex) {
        self.schema = schema
        let byType = Dictionary(grouping: objects, by: \.type)
        var number = 0
        for (type, objects) in byType.sorted(by: { schema.types[$0.key].name < schema.types[$1.key].name }) {
            let shared = objects.dropFirst().reduce(into: Set((objects.first?.fields ?? [:]).keys)) {
                $0.formIntersection($1.fields.keys)
            }
            let all = objects.reduce(into: Set<ExactText>()) { $0.formUnion($1.fields.keys) }
            uneven += all.subtracting(shared).map { "\(schema.types[type].name).\($0.text)" }.sorted()
            let keyFields = schema.types[type].keyFields ?? []
            var members: [Member] = []
            for selection in shared.sorted(by: { $0.text < $1.text }) {
                let fields = objects.compactMap { $0.fields[selection] }
                guard let field = fields.first?.field else { continue }
                var key = field.name
                if field.hasArguments || !keyFields.contains(field.name) {
                    key = "a\(number)"
                    number += 1
                }
                let shape =
                    schema.types[field.type.named].kind.isComposite
                    ? SelectionShape(fields.flatMap { $0.value.objects }, schema) : nil
                uneven += shape?.uneven ?? []
                members.append(Member(responseKey: key, selection: selection, shape: shape))
            }
            cases.append((type, members))
        }
    }

    /// The selection set, braces included.
    var text: String {
        var text = "{ __typename"
        for (type, members) in cases where !members.isEmpty {
            text += " ... on \(schema.types[type].name) {"
            for member in members {
                text += " \(member.responseKey): \(member.selection.text)"
                if let shape = member.shape { text += " \(shape.text)" }
            }
            text += " }"
        }
        return text + " }"
    }

    /// A value as an answer to `text` has it.
    func answer(_ value: TakenValue) -> Value {
        switch value {
        case .null: .null
        case .leaf(let value): value
        case .list(let elements): .list(elements.map(answer))
        case .object(let object): .object(answer(object))
        }
    }

    private func answer(_ object: TakenObject) -> [String: Value] {
        var answer: [String: Value] = ["__typename": .string(schema.types[object.type].name)]
        for member in cases.first(where: { $0.type == object.type })?.members ?? [] {
            guard let value = object.fields[member.selection]?.value else { continue }
            answer[member.responseKey] = member.shape?.answer(value) ?? value.leaves
        }
        return answer
    }
}

extension TakenValue {
    /// The objects in it, those in lists included.
    var objects: [TakenObject] {
        switch self {
        case .null, .leaf: []
        case .list(let elements): elements.flatMap(\.objects)
        case .object(let object): [object]
        }
    }

    /// A value without objects, as JSON has it.
    var leaves: Value {
        switch self {
        case .null, .object: .null
        case .leaf(let value): value
        case .list(let elements): .list(elements.map(\.leaves))
        }
    }
}
