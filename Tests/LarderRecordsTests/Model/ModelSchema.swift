import LarderGraphQL
import LarderTestSupport

/// The schema of the random tests, as text and as what the model knows of it.
enum ModelSchema {
    struct Field: Sendable {
        var name: String
        /// The innermost type, and whether each level from the outermost in may be null; lists are all but the last.
        var type: String
        var nullable: [Bool]
        var takesArgument = false

        var listDepth: Int { nullable.count - 1 }
    }

    static let text = """
        type Query {
          a(x: Int): A  as: [A!]  n: N  ns: [N]  u: U  us: [[U]]  p: P  ps: [P]  s(x: Int): String  l: [Int]
        }
        interface N { id: ID!  s: String  a: A }
        type A implements N {
          id: ID!  s: String  i: Int  a: A  n: N  p: P  ps(x: Int): [P!]  us: [U]  need: B!
        }
        type B implements N { id: ID!  s: String  a: A  as: [A]  q: P!  pp: [[P]]  f: Float }
        type P { s: String  i: Int!  a: A  p: P  ps: [P]  n: N }
        union U = A | P
        """

    static let fields: [String: [Field]] = [
        "Query": [
            Field(name: "a", type: "A", nullable: [true], takesArgument: true),
            Field(name: "as", type: "A", nullable: [true, false]), Field(name: "n", type: "N", nullable: [true]),
            Field(name: "ns", type: "N", nullable: [true, true]), Field(name: "u", type: "U", nullable: [true]),
            Field(name: "us", type: "U", nullable: [true, true, true]), Field(name: "p", type: "P", nullable: [true]),
            Field(name: "ps", type: "P", nullable: [true, true]),
            Field(name: "s", type: "String", nullable: [true], takesArgument: true),
            Field(name: "l", type: "Int", nullable: [true, true]),
        ],
        "N": [
            Field(name: "id", type: "ID", nullable: [false]), Field(name: "s", type: "String", nullable: [true]),
            Field(name: "a", type: "A", nullable: [true]),
        ],
        "A": [
            Field(name: "id", type: "ID", nullable: [false]), Field(name: "s", type: "String", nullable: [true]),
            Field(name: "i", type: "Int", nullable: [true]), Field(name: "a", type: "A", nullable: [true]),
            Field(name: "n", type: "N", nullable: [true]), Field(name: "p", type: "P", nullable: [true]),
            Field(name: "ps", type: "P", nullable: [true, false], takesArgument: true),
            Field(name: "us", type: "U", nullable: [true, true]), Field(name: "need", type: "B", nullable: [false]),
        ],
        "B": [
            Field(name: "id", type: "ID", nullable: [false]), Field(name: "s", type: "String", nullable: [true]),
            Field(name: "a", type: "A", nullable: [true]), Field(name: "as", type: "A", nullable: [true, true]),
            Field(name: "q", type: "P", nullable: [false]), Field(name: "pp", type: "P", nullable: [true, true, true]),
            Field(name: "f", type: "Float", nullable: [true]),
        ],
        "P": [
            Field(name: "s", type: "String", nullable: [true]), Field(name: "i", type: "Int", nullable: [false]),
            Field(name: "a", type: "A", nullable: [true]), Field(name: "p", type: "P", nullable: [true]),
            Field(name: "ps", type: "P", nullable: [true, true]), Field(name: "n", type: "N", nullable: [true]),
        ],
    ]

    static let possibleTypes = [
        "Query": ["Query"], "N": ["A", "B"], "U": ["A", "P"], "A": ["A"], "B": ["B"], "P": ["P"],
    ]

    static func isEntity(_ type: String) -> Bool { type == "A" || type == "B" }
}

/// One selected field of a random operation. Each has a response key of its own.
struct ModelSelection {
    var key: String
    var field: ModelSchema.Field
    var argument: Int?
    /// The type whose objects it is asked of.
    var condition: String
    var selections: [ModelSelection]

    var fieldKey: String { argument.map { "\(field.name)({\"x\":\($0)})" } ?? field.name }

    func applies(to type: String) -> Bool { ModelSchema.possibleTypes[condition]?.contains(type) ?? false }

    func text(in type: String) -> String {
        var text = "\(key): \(field.name)"
        if let argument { text += "(x: \(argument))" }
        if !selections.isEmpty { text += " " + Self.text(selections, in: field.type) }
        return condition == type ? text : "... on \(condition) { \(text) }"
    }

    static func text(_ selections: [ModelSelection], in type: String) -> String {
        "{ " + selections.map { $0.text(in: type) }.joined(separator: " ") + " }"
    }

    static func random(
        of type: String, depth: Int, _ next: inout Int, _ random: inout SeededNumbers
    ) -> [ModelSelection] {
        let conditions = type == "N" ? ["N", "A", "B"] : ModelSchema.possibleTypes[type] ?? []
        return (0..<Int.random(in: 1...(depth > 1 ? 4 : 3), using: &random)).map { _ in
            let condition = conditions.randomElement(using: &random) ?? type
            let fields = (ModelSchema.fields[condition] ?? []).filter {
                depth > 0 || ModelSchema.possibleTypes[$0.type] == nil
            }
            let field = fields.randomElement(using: &random) ?? .init(name: "s", type: "String", nullable: [true])
            next += 1
            let key = "f\(next)"
            return ModelSelection(
                key: key, field: field,
                argument: field.takesArgument && Bool.random(using: &random)
                    ? Int.random(in: 0...1, using: &random) : nil,
                condition: condition,
                selections: ModelSchema.possibleTypes[field.type] == nil
                    ? [] : ModelSelection.random(of: field.type, depth: depth - 1, &next, &random))
        }
    }
}
