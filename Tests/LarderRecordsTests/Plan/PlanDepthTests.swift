import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// A selection that stands in several places is planned once, at the first; what is below it may be deeper elsewhere.
@Suite("Depth of plans")
struct PlanDepthTests {
    private static let chain = 20

    /// Fragments that lead to each other, each `chain` fields deep, asked for from the innermost on.
    private static func document(fragments: Int) -> String {
        let roots = (0..<fragments).reversed().map { "v\($0): viewer { ...F\($0) }" }.joined(separator: " ")
        let bodies = (0..<fragments).map { number in
            let rest = number + 1 < fragments ? "...F\(number + 1)" : "name"
            let fields = String(repeating: "f\(number): best { ", count: chain) + rest
            return "fragment F\(number) on User { \(fields) \(String(repeating: "}", count: chain)) }"
        }
        return "{ \(roots) } " + bodies.joined(separator: " ")
    }

    @Test("A plan is as deep as its deepest way, wherever its selections were planned first", arguments: [1, 2, 3, 12])
    func depth(fragments: Int) throws {
        let document = try Document(parsing: Self.document(fragments: fragments))
        let operation = try CompiledOperation(operation: nil, in: document, SchemaIndex(parsing: movieSchema)).bound()
        #expect(operation.layout.plan.depth >= fragments * Self.chain + 2)
    }

    @Test("Fragments that lead to each other nest no deeper than a plan may", arguments: [30, 400])
    func tooDeep(fragments: Int) throws {
        let document = try Document(parsing: Self.document(fragments: fragments))
        let error = #expect(throws: PlanError.self) {
            try CompiledOperation(operation: nil, in: document, SchemaIndex(parsing: movieSchema)).bound()
        }
        #expect(error?.code == .tooComplex)
    }

    @Test("A chain of fragments of any length is planned, whichever is asked for first", arguments: [false, true])
    func chain(beginsAtEnd: Bool) throws {
        let length = 1_000
        let bodies = (0..<length).map { "fragment F\($0) on User { ...F\($0 + 1) }" }.joined(separator: " ")
        let first = beginsAtEnd ? "a: viewer { ...F\(length) }" : ""
        let document = try Document(
            parsing: "{ \(first) viewer { ...F0 } } \(bodies) fragment F\(length) on User { name }")
        let operation = try CompiledOperation(operation: nil, in: document, SchemaIndex(parsing: movieSchema))
        #expect(try operation.bound().layout.plan.depth == 2)
    }

    @Test("An answer is read along fragments that lead to each other")
    func reading() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ viewer { id name best { id } } }", data: #"""
                {"viewer":{"__typename":"User","id":"1","name":"Ada","best":{"__typename":"User","id":"1"}}}
                """#)
            let response = try sample.cache.read(sample.operation(Self.document(fragments: 12))).response
            var path = ResponsePath([.field("v0")])
            for number in 0..<12 { for _ in 0..<Self.chain { path.components.append(.field("f\(number)")) } }
            path.components.append(.field("name"))
            #expect(response[path]?.string == "Ada")
        }
    }
}
