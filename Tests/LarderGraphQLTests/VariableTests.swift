import LarderGraphQL
import Testing

@Suite("Variables that a program gives")
struct VariableTests {
    private static let schema = """
        type Query { find(in: In, kinds: [Kind!], float: Float, text: String!, raw: JSON): Int }
        input In { name: String! size: Int! = 1 kind: Kind deep: In list: [[In!]] }
        enum Kind { A B } scalar JSON
        """
    private static let text = """
        query Q($in: In, $kinds: [Kind!], $float: Float, $text: String!, $raw: JSON) {
          find(in: $in, kinds: $kinds, float: $float, text: $text, raw: $raw)
        }
        """

    /// What the variables are to the operation; the text is given as well unless they have it.
    private func coerced(_ variables: [String: Value]) throws -> [String: Value] {
        let operation = try #require(Document(parsing: Self.text).operations.first)
        return try operation.coerce(
            variables.merging(["text": "given"]) { own, _ in own }, in: SchemaIndex(parsing: Self.schema))
    }

    @Test(
        "What fits its type stays as it was given",
        arguments: [
            ["in": ["name": "x"]], ["in": ["name": "x", "size": 7, "kind": nil, "deep": nil]], ["in": nil],
            ["in": ["name": "x", "kind": "B", "deep": ["name": "y"], "list": [[["name": "z"]], nil]]],
            ["kinds": ["A", "B"]], ["kinds": "A"], ["kinds": []], ["float": 1], ["float": 1.5],
            ["raw": ["any": [1, nil, "x"]]],
        ] as [[String: Value]])
    func fits(variables: [String: Value]) throws {
        let all = variables.merging(["text": "given"]) { own, _ in own }
        #expect(try coerced(variables) == all)
    }

    @Test(
        "What does not fit is told with its place in the variable",
        arguments: [
            (["in": [:]], "$in.name is required"), (["in": ["size": 1]], "$in.name is required"),
            (["in": ["name": nil]], "$in.name is null, and its type String! does not allow it"),
            (["in": ["name": "x", "size": nil]], "$in.size is null, and its type Int! does not allow it"),
            (["in": ["name": "x", "size": "7"]], "$in.size is not of type Int"),
            (["in": ["name": "x", "kind": "C"]], "$in.kind is C, which is no value of Kind"),
            (["in": ["name": "x", "kind": 1]], "$in.kind is not of type Kind"),
            (["in": ["name": "x", "color": "red"]], "$in has no field color in In"),
            (["in": ["name": "x", "deep": ["kind": "A"]]], "$in.deep.name is required"),
            (["in": ["name": "x", "list": [[["name": "z"], [:]]]]], "$in.list[0][1].name is required"),
            (["in": "x"], "$in is not of type In"),
            (["kinds": ["A", nil]], "$kinds[1] is null, and its type Kind! does not allow it"),
            (["kinds": ["A", "a"]], "$kinds[1] is a, which is no value of Kind"),
            (["float": "1"], "$float is not of type Float"),
            (["text": nil], "$text is null, and its type String! does not allow it"),
            (["b": 1, "a": 1], "The operation has no variable $a"),
        ] as [([String: Value], String)])
    func misfits(variables: [String: Value], message: String) {
        let error = #expect(throws: PlanError.self) { try coerced(variables) }
        #expect(error?.code == .variable)
        #expect(error?.message == message)
    }

    @Test("A variable that must be given is told with its type, at its definition")
    func required() throws {
        let operation = try #require(Document(parsing: Self.text).operations.first)
        let schema = try SchemaIndex(parsing: Self.schema)
        let error = #expect(throws: PlanError.self) { try operation.coerce([:], in: schema) }
        #expect(error?.code == .variable)
        #expect(error?.message == "The variable $text of type String! is required")
        #expect(error?.location == operation.variables.first { $0.name == "text" }?.location)
    }
}
