import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// A selection that stands in several places is planned once, at the first; what is below it may be deeper elsewhere.
@Suite("Depth of plans", .timeLimit(.minutes(10)))
struct PlanDepthTests {
    private static let chain = 8

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

    @Test("A plan nests 120 levels, and no more")
    func deepest() throws {
        func depth(fragments: Int) throws -> Int {
            let bodies = (0..<fragments).map { "fragment F\($0) on User { best { ...F\($0 + 1) } }" }
            let document = try Document(
                parsing: "{ viewer { ...F0 } } \(bodies.joined(separator: " ")) fragment F\(fragments) on User { name }"
            )
            let operation = try CompiledOperation(operation: nil, in: document, SchemaIndex(parsing: movieSchema))
            return try operation.bound().layout.plan.depth
        }
        #expect(try depth(fragments: 118) == 120)
        let error = #expect(throws: PlanError.self) { try depth(fragments: 119) }
        #expect(error?.code == .tooComplex)
    }

    private static func compile(_ text: String, _ schema: String) throws -> Plan {
        let document = try Document(parsing: text)
        let operation = try #require(document.operations.first)
        return try Plan.compile(operation, of: document, SchemaIndex(parsing: schema), conditions: [:])
    }

    @Test("A plan has 100,000 fields, and no more", .timeLimit(.minutes(5)))
    func mostFields() throws {
        func plan(_ count: Int) throws -> Plan {
            let fields = (1..<count).map { "n\($0): n" }.joined(separator: " ")
            return try Self.compile("{ __typename \(fields) }", "type Query { n: Int }")
        }
        let most = try plan(100_000)
        #expect(most.fields.count == 100_000)
        let error = #expect(throws: PlanError.self) { try plan(100_001) }
        #expect(error?.code == .tooComplex)
    }

    @Test("An operation that takes more than two million steps to plan is refused", .timeLimit(.minutes(5)))
    func mostWork() throws {
        // Each type is compared with each, and has a case of its own, for which all fragments are looked through.
        func plan(_ count: Int) throws {
            let types = (0..<count).map { "type T\($0) implements Node { id: ID! }" }.joined(separator: " ")
            let fragments = (0..<count).map { "... on T\($0) { a\($0): id }" }.joined(separator: " ")
            _ = try Self.compile(
                "{ node { \(fragments) } }", "type Query { node: Node } interface Node { id: ID! } \(types)")
        }
        try plan(900)
        let error = #expect(throws: PlanError.self) { try plan(1_100) }
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

    // What is merged doubled with each fragment: the test never ended.
    @Test("A chain of fragments that meet again at each level is merged once", .timeLimit(.minutes(2)))
    func meetingFragments() throws {
        let length = 100
        let bodies = (0..<length).map { "fragment F\($0) on User { best { name ...F\($0 + 1) } ...F\($0 + 1) }" }
        let document = try Document(
            parsing: "{ viewer { ...F0 } } \(bodies.joined(separator: " ")) fragment F\(length) on User { name }")
        let operation = try CompiledOperation(operation: nil, in: document, SchemaIndex(parsing: movieSchema))
        let plan = try operation.bound().layout.plan
        #expect(plan.depth == length + 2)
        #expect(plan.selections.count == length + 2)
    }

    @Test("Thousands of fragments are found by their names", .timeLimit(.minutes(2)))
    func manyFragments() throws {
        let count = 16_000
        let spreads = (0..<count).map { "...F\($0)" }.joined(separator: " ")
        let bodies = (0..<count).map { "fragment F\($0) on User { a\($0 % 100): name }" }.joined(separator: " ")
        let document = try Document(parsing: "{ viewer { \(spreads) } } \(bodies)")
        let operation = try CompiledOperation(operation: nil, in: document, SchemaIndex(parsing: movieSchema))
        #expect(try operation.bound().layout.plan.cases.map(\.names.count).max() == 100)
    }

    /// Which fragments meet at a place depends on every turn of the way there: 2 to the power of `levels` places.
    private static func branching(_ levels: Int) -> String {
        let bodies = (0..<levels).map { level in
            (0...level).map { number in
                let next = "...F\(level + 1)_\(number + 1)"
                let own = number == 0 ? "...F\(level + 1)_0" : ""
                return "fragment F\(level)_\(number) on User { a: best { \(own) \(next) } b: best { "
                    + "\(number == 0 ? own : next) } }"
            }.joined(separator: " ")
        }.joined(separator: " ")
        let last = (0...levels).map { "fragment F\(levels)_\($0) on User { name }" }.joined(separator: " ")
        return "{ viewer { ...F0_0 } } \(bodies) \(last)"
    }

    @Test(
        "An operation that fragments make too large is refused in time, and one that they make large is planned",
        .timeLimit(.minutes(5)))
    func branching() throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        let small = try Document(parsing: Self.branching(8))
        #expect(try CompiledOperation(operation: nil, in: small, schema).bound().layout.plan.depth == 10)
        let large = try Document(parsing: Self.branching(40))
        let operation = try #require(large.operations.first)
        let error = #expect(throws: PlanError.self) {
            try Plan.compile(operation, of: large, schema, conditions: [:])
        }
        #expect(error?.code == .tooComplex)
        #expect(throws: PlanError.self) { try CompiledOperation(operation: nil, in: large, schema) }
    }

    @Test("An answer is read along fragments that lead to each other")
    func reading() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ viewer { id name best { id } } }",
                data: #"""
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
