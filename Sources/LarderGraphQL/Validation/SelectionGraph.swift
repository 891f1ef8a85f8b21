/// The selection sets of a document as numbers: which fields a set has, and which fragments it spreads.
///
/// Inline fragments are dissolved into the set around them; a field knows its own parent type.
struct SelectionGraph {
    struct FieldNode {
        /// Equal numbers are equal keys.
        var responseKey: Int
        /// Equal numbers are the same field with the same arguments.
        var signature: Int
        var name: String
        var parent: SchemaIndex.TypeID
        /// Whether the parent is an object type.
        var isConcrete: Bool
        /// Nil for a field that does not exist.
        var type: ResolvedType?
        /// The set of the field's own selections.
        var child: Int?
        var location: Location
    }

    struct SetNode {
        var fields: [Int] = []
        /// In the document's fragments, each once.
        var fragments: [Int] = []
    }

    private(set) var fields: [FieldNode] = []
    private(set) var sets: [SetNode] = []
    // By bytes: strings that are equal only after Unicode normalization are different arguments.
    private var keys: [[UInt8]: Int] = [:]
    private var signatures: [[UInt8]: Int] = [:]
    private var membership: Set<Membership> = []

    private struct Membership: Hashable {
        var set: Int
        var fragment: Int
    }

    mutating func addSet() -> Int {
        sets.append(SetNode())
        return sets.count - 1
    }

    mutating func addFragment(_ fragment: Int, to set: Int) {
        if membership.insert(Membership(set: set, fragment: fragment)).inserted {
            sets[set].fragments.append(fragment)
        }
    }

    mutating func add(
        _ field: Field, to set: Int, parent: SchemaIndex.TypeID, isConcrete: Bool, type: ResolvedType?, child: Int?
    ) {
        sets[set].fields.append(fields.count)
        fields.append(
            FieldNode(
                responseKey: Self.number(of: field.responseKey, in: &keys),
                signature: Self.number(of: Self.signature(of: field), in: &signatures),
                name: field.name, parent: parent, isConcrete: isConcrete, type: type, child: child,
                location: field.location))
    }

    /// The fields of several sets and of all fragments that they spread, each once and in the order of the text;
    /// nil where the budget ran out.
    ///
    /// - Parameter roots: The selection set of each fragment.
    func fields(of start: [Int], roots: [Int?], budget: inout WorkBudget) -> [Int]? {
        var result: [Int] = []
        var seen: Set<Int> = Set(start)
        var waiting = start
        while let set = waiting.popLast() {
            let node = sets[set]
            guard budget.spend(node.fields.count + node.fragments.count + 1) else { return nil }
            result += node.fields
            for fragment in node.fragments {
                if let root = roots[fragment], seen.insert(root).inserted { waiting.append(root) }
            }
        }
        return result.sorted(by: isBefore)
    }

    /// The order of the text, and where that says nothing, of the walk.
    func isBefore(_ first: Int, _ second: Int) -> Bool {
        (fields[first].location, first) < (fields[second].location, second)
    }

    private static func number(of text: String, in table: inout [[UInt8]: Int]) -> Int {
        let bytes = Array(text.utf8)
        if let number = table[bytes] { return number }
        table[bytes] = table.count
        return table.count - 1
    }

    /// The field and its arguments, in an order of their own, so that order does not matter.
    private static func signature(of field: Field) -> String {
        guard !field.arguments.isEmpty else { return field.name }
        let arguments = field.arguments.map { "\($0.name):\($0.value.sorted)" }.sorted()
        return field.name + "(" + arguments.joined(separator: ",") + ")"
    }
}

extension Literal {
    /// The same value with the fields of all objects in the order of their names.
    fileprivate var sorted: Literal {
        switch self {
        case .list(let elements): .list(elements.map(\.sorted))
        case .object(let fields):
            .object(
                fields.map { ObjectField(name: $0.name, value: $0.value.sorted) }.sorted { $0.name < $1.name })
        default: self
        }
    }
}
