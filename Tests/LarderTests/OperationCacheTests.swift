import LarderGraphQL
import Testing

@testable import Larder

@Suite("Operations that are kept compiled")
struct OperationCacheTests {
    @Test("Variables and documents of megabytes do not fill the memory, and what is used again stays compiled")
    func bytes() throws {
        let cache = OperationCache(try SchemaIndex(parsing: "type Query { note(text: String): String }"))
        let usual = GraphQLOperation("{ note }")
        let first = try cache.bound(usual)
        let text = String(repeating: "x", count: 1 << 20)
        for number in 0..<12 {
            _ = try cache.bound(
                GraphQLOperation(
                    "query($t: String) { note(text: $t) }", variables: ["t": .string("\(text)\(number)")]))
            _ = try cache.bound(GraphQLOperation("{ n\(number): note(text: \"\(text)\") }"))
            #expect(try cache.bound(usual) === first)
        }
        #expect(cache.size <= OperationCache.compiledLimit + OperationCache.boundLimit)
    }

    @Test("Compiled operations are kept up to 64 MiB, and operations with variables up to 16 MiB")
    func limits() {
        #expect(OperationCache.compiledLimit == 64 << 20)
        #expect(OperationCache.boundLimit == 16 << 20)
    }

    @Test("An operation that its fragments make too deep is refused as an operation, and not for its variables")
    func tooComplex() throws {
        let cache = OperationCache(
            try SchemaIndex(parsing: "type Query { viewer: User } type User { name: String best: User }"))
        let bodies = (0..<150).map { "fragment F\($0) on User { best { ...F\($0 + 1) } }" }.joined(separator: " ")
        let operation = GraphQLOperation("{ viewer { ...F0 } } \(bodies) fragment F150 on User { name }")
        let error = #expect(throws: LarderError.self) { try cache.bound(operation) }
        #expect(error?.code == .operation)
    }

    @Test("Fragments are equal by the bytes of their documents, by their names and by their variables")
    func fragments() {
        let one = GraphQLFragment("fragment F on Caf\u{E9} { id }", name: "F", variables: ["a": 1])
        var others = [one, one, one]
        others[0].document = "fragment F on Cafe\u{301} { id }"
        others[1].name = nil
        others[2].variables = ["a": 2]
        for other in others { #expect(one != other) }
        #expect(Set(others + [one] + others).count == 4)
        for other in [others[0], others[2]] { #expect(one.hashValue != other.hashValue) }
    }

    @Test("Operations are equal by the bytes of their documents, by their names and by their variables")
    func operations() {
        let one = GraphQLOperation("query Caf\u{E9} { note }", name: "F", variables: ["a": 1])
        var others = [one, one, one]
        others[0].document = "query Cafe\u{301} { note }"
        others[1].name = nil
        others[2].variables = ["a": 2]
        for other in others { #expect(one != other) }
        #expect(Set(others + [one] + others).count == 4)
        for other in [others[0], others[2]] { #expect(one.hashValue != other.hashValue) }
    }

    @Test("A variable that no JSON can say is refused, also where the operation is compiled for one use")
    func unsoundVariables() throws {
        let cache = OperationCache(
            try SchemaIndex(parsing: "scalar Any type Query { note(any: Any, at: Float): String }"))
        let document = "query($any: Any, $at: Float) { note(any: $any, at: $at) }"
        for variables: [String: Value] in [["any": .number("1x")], ["any": [.float(.nan)]], ["at": .float(.infinity)]] {
            let operation = GraphQLOperation(document, variables: variables)
            for compile in [{ try cache.bound(operation) }, { try cache.boundOnce(operation) }] {
                let error = #expect(throws: LarderError.self) { try compile() }
                #expect(error?.code == .variables)
                #expect(error?.message.hasPrefix("A variable cannot be used: ") == true, "\(error as Any)")
            }
        }
    }

    @Test("A document is parsed and validated once, whatever variables it is used with")
    func parsedOnce() throws {
        let cache = OperationCache(try SchemaIndex(parsing: "type Query { note(text: String): String }"))
        let document = "query($t: String) { note(text: $t) }"
        let first = try cache.compiled(GraphQLOperation(document, variables: ["t": "a"]))
        _ = try cache.bound(GraphQLOperation(document, variables: ["t": "b"]))
        let later = try cache.compiled(GraphQLOperation(document, variables: ["t": "c"]))
        #expect(first === later)
    }

    @Test("A compiled document counts with its text")
    func counts() throws {
        let cache = OperationCache(try SchemaIndex(parsing: "type Query { note(text: String): String }"))
        _ = try cache.compiled(GraphQLOperation("{ note(text: \"\(String(repeating: "x", count: 1 << 20))\") }"))
        #expect(cache.size >= 1 << 20)
    }
}
