import LarderGraphQL
import LarderTestSupport
import Testing

@Suite("Recursion and the size of the stack")
struct StackTests {
    private static func nested(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    private static let schema = """
        scalar J input I { i: I j: J l: [[[[I]]]] } interface N { id: ID n: N } type A implements N { id: ID n: N }
        type Query { a(i: I, j: J): Query n: N }
        """

    private static let depth = ParserLimits.deepest

    /// Documents that nest as deep as the parser lets them, each in another way.
    static let documents = [
        nested("{a", depth - 1) + "{__typename" + nested("}", depth),
        nested("{...", depth - 1) + "{__typename" + nested("}", depth),
        nested("{n", depth - 1) + "{__typename" + nested("}", depth),
        "{n" + nested("{...on N", depth - 2) + "{id" + nested("}", depth),
        "{a(i:" + nested("{i:", depth - 2) + "{}" + nested("}", depth - 2) + "){__typename}}",
        "{a(j:" + nested("[", depth - 1) + nested("]", depth - 1) + "){__typename}}",
        "query($a:" + nested("[", depth) + "Int" + nested("]", depth) + "){a{__typename}}",
        "query($i:I=" + nested("{i:", depth - 1) + "{}" + nested("}", depth - 1) + "){a(i:$i){__typename}}",
        "query($i:J=" + nested("[{i:", depth / 2 - 1) + "{}" + nested("}]", depth / 2 - 1) + "){a(j:$i){__typename}}",
    ]

    private func check(_ what: String, _ body: @escaping () throws -> Void) throws {
        let use = try stackUse(of: body)
        #expect(use < smallestStack - (64 << 10), "\(what)")
    }

    @Test(
        "The deepest documents are parsed, printed, compared, validated, completed and compiled on the smallest stack",
        arguments: 0..<9)
    func deepestDocuments(_ index: Int) throws {
        let text = Self.documents[index]
        let schema = try SchemaIndex(parsing: Self.schema)
        try check("parse \(index)") { _ = try Document(parsing: text) }
        let document = try Document(parsing: text)
        try check("print \(index)") { _ = document.printed() }
        let other = try Document(parsing: text)
        try check("compare \(index)") { _ = document == other }
        try check("hash \(index)") { _ = Set([document]) }
        try check("validate \(index)") { _ = validate(document, against: schema) }
        let operation = try #require(document.operations.first)
        try check("complete \(index)") { _ = document.forSending(operation, schema) }
        try check("walk \(index)") { _ = document.strings }
        guard validate(document, against: schema).isEmpty else { return }
        try check("compile \(index)") { _ = try Plan.compile(operation, of: document, schema, conditions: [:]) }
        let plan = try Plan.compile(operation, of: document, schema, conditions: [:])
        try check("bind \(index)") {
            _ = OperationBinding(plan, variables: try operation.coerce([:], in: schema), schema: schema)
        }
    }
}
