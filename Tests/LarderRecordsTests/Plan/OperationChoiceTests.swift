import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("Which operation or fragment of a document is meant")
struct OperationChoiceTests {
    private func fault(
        operation name: String?, _ text: String, isFragment: Bool = false
    ) throws -> String? {
        let document = try Document(parsing: text)
        let schema = try SchemaIndex(parsing: movieSchema)
        do throws(PlanError) {
            _ =
                isFragment
                ? try CompiledOperation(fragment: name, in: document, schema)
                : try CompiledOperation(operation: name, in: document, schema)
            return nil
        } catch {
            return "\(error.code): \(error.message)"
        }
    }

    @Test("An operation is found by its name, or alone; the error names those that there are")
    func operations() throws {
        let one = "query A { count }"
        let two = one + " query B { count }"
        #expect(try fault(operation: nil, one) == nil)
        #expect(try fault(operation: "B", two) == nil)
        #expect(
            try fault(operation: nil, two)
                == "notFound: The document has several operations, and one must be named: A, B")
        #expect(
            try fault(operation: "C", two) == "notFound: The document has no operation C; it has: A, B")
        #expect(
            try fault(operation: "C", "{ count }")
                == "notFound: The document has no operation C; it has: one without a name")
        let fragment = "fragment F on Movie { id }"
        #expect(try fault(operation: "C", fragment) == "notFound: The document has no operation")
        #expect(try fault(operation: nil, fragment) == "notFound: The document has no operation")
    }

    @Test("What other operations of the document do wrong is not this one's matter")
    func neighbours() throws {
        let text = "query A { count } query B { nothing }"
        #expect(try fault(operation: "A", text) == nil)
        #expect(try fault(operation: "B", text)?.hasSuffix("Query has no field nothing") == true)
        let three = try fault(operation: "B", "query B { nothing nowhere never }")
        #expect(three?.hasSuffix("Query has no field nothing (and 2 more)") == true)
    }

    @Test("The strings of an operation are those of itself and its fragments, and none of the others in its document")
    func strings() throws {
        let document = try Document(
            parsing: """
                query A { note(text: "mine") movie(id: "film") { ...F } }
                query B { note(text: "other") movie(id: "opus") { ...G } }
                fragment F on Movie { related(after: "shared") { id } }
                fragment G on Movie { related(after: "theirs") { id } }
                """)
        let schema = try SchemaIndex(parsing: movieSchema)
        let operation = try CompiledOperation(operation: "A", in: document, schema)
        #expect(operation.strings.sorted() == ["film", "mine", "shared"])
        #expect(try CompiledOperation(fragment: "G", in: document, schema).strings == ["theirs"])
    }

    @Test("A fragment that is read by itself may have variables that nothing defines, and nothing else that is wrong")
    func fragments() throws {
        let text = "fragment F on Movie { related(first: $n) { id } } fragment G on Movie { id }"
        #expect(try fault(operation: "F", text, isFragment: true) == nil)
        #expect(
            try fault(operation: nil, text, isFragment: true)
                == "notFound: The document has no fragment that is its only one; it has: F, G")
        #expect(
            try fault(operation: "H", text, isFragment: true)
                == "notFound: The document has no fragment H; it has: F, G")
        let wrong = "fragment F on Movie { nothing related(first: $n) { id } }"
        let found = try fault(operation: nil, wrong, isFragment: true)
        #expect(found?.hasPrefix("invalid: ") == true && found?.hasSuffix("Movie has no field nothing") == true)
    }

    @Test("A variable that decides what a fragment selects must be given")
    func fragmentConditions() throws {
        let text = "fragment F on Movie { id title @include(if: $wanted) }"
        let fragment = try CompiledOperation(
            fragment: nil, in: Document(parsing: text), SchemaIndex(parsing: movieSchema))
        for variables in [[:], ["wanted": .null]] as [[String: Value]] {
            let error = #expect(throws: PlanError.self) { try fragment.bound(variables) }
            #expect(error?.code == .variable)
            #expect(error?.message.contains("$wanted") == true)
        }
        #expect(throws: Never.self) { try fragment.bound(["wanted": .boolean(false)]) }
    }
}
