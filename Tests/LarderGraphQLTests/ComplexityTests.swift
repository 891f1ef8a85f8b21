import LarderGraphQL
import Testing

@Suite("Entangled documents")
struct ComplexityTests {
    private static let schema = Result {
        try SchemaIndex(
            parsing: """
                type Query implements Node { a: Query b: Query n: Int i(x: Int): Int node: Node }
                interface Node { n: Int node: Node } type Other implements Node { n: Int node: Node }
                """)
    }

    private func rules(_ text: String, budget: Int = 10_000_000) throws -> Set<ValidationRule> {
        Set(validate(try Document(parsing: text), against: try Self.schema.get(), budget: budget).map(\.rule))
    }

    @Test("Of very many errors a hundred at most are told, and errors are in the order of their places")
    func manyErrors() throws {
        func errors(_ text: String) throws -> [ValidationError] {
            validate(try Document(parsing: text), against: try Self.schema.get())
        }
        let unknown = (0..<500).map { "x\($0)" }.joined(separator: " ")
        #expect((90...100).contains(try errors("{ \(unknown) }").count))
        let found = try errors("{ x ...F } fragment F on Query { y }")
        #expect(found.count == 2 && found.map(\.location) == found.map(\.location).sorted())
    }

    @Test("Fragments that spread the next one twice are checked once each", arguments: [30, 2_000])
    func doubling(levels: Int) throws {
        let fragments = (0..<levels).map { "fragment f\($0) on Query { ...f\($0 + 1) ...f\($0 + 1) n }" }
        #expect(try rules("{ ...f0 } fragment f\(levels) on Query { n }" + fragments.joined()) == [])
    }

    @Test("Fields that each lead to the next fragment twice are checked once each", arguments: [30, 1_000])
    func doublingThroughFields(levels: Int) throws {
        let fragments = (0..<levels).map { "fragment f\($0) on Query { a { ...f\($0 + 1) } b { ...f\($0 + 1) } }" }
        #expect(try rules("{ ...f0 } fragment f\(levels) on Query { n }" + fragments.joined()) == [])
    }

    @Test("Pairs of fragments that cross at every level are checked in bounded work")
    func crossing() throws {
        let fragments = (0..<60).map { level in
            "fragment f\(level) on Query { a { ...f\(level + 1) ...g\(level + 1) } b { ...f\(level + 1) } }"
                + "fragment g\(level) on Query { a { ...g\(level + 1) } b { ...f\(level + 1) ...g\(level + 1) } }"
        }
        let end = "fragment f60 on Query { n } fragment g60 on Query { n }"
        let found = try rules("{ ...f0 ...g0 }" + fragments.joined() + end, budget: 200_000)
        #expect(found.isSubset(of: [.complexity]))
    }

    @Test("A chain of fragments as long as a document allows is followed without recursion")
    func chain() throws {
        let fragments = (0..<20_000).map { "fragment f\($0) on Query{...f\($0 + 1)}" }.joined()
        #expect(try rules("{ ...f0 } fragment f20000 on Query { n }" + fragments) == [])
        #expect(
            try rules("{ ...f0 } fragment f20000 on Query { ...f0 }" + fragments)
                == [.fragmentSpreadsMustNotFormCycles])
    }

    @Test("The same field many times over is compared in linear work")
    func repeated() throws {
        let fields = String(repeating: "i(x: 1) node { n } ", count: 5_000)
        #expect(try rules("{ \(fields) }", budget: 200_000) == [])
        #expect(try rules("{ \(fields) i(x: 2) }", budget: 200_000) == [.fieldSelectionMerging])
    }

    @Test("Many operations over many fragments stop at the budget, with an error that says so")
    func budget() throws {
        let operations = (0..<300).map { "query q\($0) { ...all }" }.joined()
        let spreads = (0..<300).map { "...f\($0)" }.joined()
        let fragments = (0..<300).map { "fragment f\($0) on Query { n }" }.joined()
        let text = operations + "fragment all on Query { \(spreads) }" + fragments
        #expect(try rules(text) == [])
        #expect(try rules(text, budget: 10_000) == [.complexity])
    }

    @Test("A document that a program nested deeper than any text is refused")
    func deepProgram() throws {
        var field = Field(name: "n")
        for _ in 0..<1_000 { field = Field(name: "a", selections: [.field(field)]) }
        let document = Document(operations: [OperationDefinition(kind: .query, selections: [.field(field)])])
        let errors = validate(document, against: try Self.schema.get())
        #expect(errors.map(\.rule) == [.complexity])
    }
}
