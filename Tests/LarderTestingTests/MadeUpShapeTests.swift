import Larder
import LarderTesting
import Testing

private let shapes = """
    scalar AWSDate scalar AWSTime scalar AWSTimestamp scalar AWSURL scalar AWSEmail scalar AWSJSON scalar Odd
    enum Colour { RED GREEN }
    union Either = Item | Part
    type Item { id: ID! count: Int! size: Float! code: String! made: AWSDate at: AWSTime stamp: AWSTimestamp
      link: AWSURL mail: AWSEmail data: AWSJSON odd: Odd colour: Colour! tags: [String!]! grid: [[Int!]!]!
      part(n: Int = 3): Part either: Either }
    type Part { text: String! number: Int! }
    type Pair @typePolicy(keyFields: "left right") { left: Int! right: String! name: String! }
    type Link { cursor: String node: Item }
    type Info { hasNextPage: Boolean! hasPreviousPage: Boolean! endCursor: String startCursor: String }
    type Links { edges: [Link!]! pageInfo: Info! nextToken: String! }
    input Change { id: ID! nested: Inner }
    input Inner { count: Int code: Int size: Int }
    type Query { item(id: ID!): Item items(limit: Int, last: Int, kind: String): [Item!]! links(first: Int): Links
      pair(left: Int!, right: String!): Pair either: Either }
    type Mutation { change(input: Change!): Item! }
    """

@Suite("Shapes of made-up data", .timeLimit(.minutes(5)))
struct MadeUpShapeTests {
    /// What the server answers, as it is.
    private func data(
        _ document: String, _ variables: String = "{}", kind: GraphQLRequest.OperationKind = .query,
        name: String? = nil, values: [String: Value] = [:], server: ScriptedServer? = nil
    ) async throws -> [String: Value] {
        let server = try server ?? ScriptedServer(schema: try Schema(parsing: shapes), values: values)
        let answer = try await server.send(
            GraphQLRequest(
                kind: kind, operationName: name, document: document, documentHash: "",
                variables: Array(variables.utf8)),
            within: .seconds(60))
        guard case .object(let body) = try Value(json: answer.body), case .object(let data)? = body["data"] else {
            throw TransportError(.unusableAnswer, String(decoding: answer.body, as: UTF8.self))
        }
        return data
    }

    private func members(_ value: Value?) throws -> [String: Value] {
        guard case .object(let members)? = value else { throw TransportError(.unusableAnswer, "no object") }
        return members
    }

    private func elements(_ value: Value?) throws -> [Value] {
        guard case .list(let elements)? = value else { throw TransportError(.unusableAnswer, "no list") }
        return elements
    }

    private func text(_ value: Value?) -> String { if case .string(let text)? = value { text } else { "" } }

    @Test("Each scalar is made up as its type is written")
    func scalars() async throws {
        let fields = "id count size code made at stamp link mail data odd colour tags grid"
        let item = try members(try await data("{ item(id: 1) { \(fields) } }")["item"])
        #expect(text(item["id"]) == "1")
        if case .int(let count)? = item["count"] { #expect((0..<1000).contains(count)) } else { Issue.record("count") }
        if case .float(let size)? = item["size"] { #expect((0..<100).contains(size)) }
        #expect(text(item["code"]).hasPrefix("code ") && text(item["odd"]).hasPrefix("odd "))
        #expect(text(item["made"]).wholeMatch(of: /2024-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])/) != nil)
        #expect(text(item["at"]).wholeMatch(of: /12:00:[0-5]\d/) != nil)
        if case .int(let stamp)? = item["stamp"] {
            #expect((1_700_000_000..<1_700_001_000).contains(stamp))
        } else {
            Issue.record("stamp")
        }
        #expect(text(item["link"]).hasPrefix("https://example.com/link/"))
        #expect(text(item["mail"]).wholeMatch(of: /mail\.\d+@example\.com/) != nil)
        #expect(text(item["data"]) == "{}" && ["RED", "GREEN"].contains(text(item["colour"])))
        #expect(try elements(item["tags"]).count == 3)
        #expect(try elements(item["grid"]).map { try elements($0).count } == [3, 3, 3])
    }

    @Test("A list is as long as is asked for, and no longer than three, without other objects")
    func lengths() async throws {
        func ids(_ arguments: String) async throws -> [String] {
            try elements(try await data("{ items\(arguments) { id } }")["items"]).map { text(try members($0)["id"]) }
        }
        let all = try await ids("")
        #expect(all.count == 3)
        for (arguments, count) in [
            ("(limit: 2)", 2), ("(limit: 9)", 3), ("(limit: 0)", 0), ("(limit: -1)", 0), ("(last: 1)", 1),
        ] {
            let found = try await ids(arguments)
            #expect(found == Array(all.prefix(count)), "\(arguments)")
        }
        let others = try await ids(#"(kind: "other")"#)
        #expect(Set(others).isDisjoint(with: all))
    }

    @Test("A connection ends at its first page, which is as long as its field says")
    func connections() async throws {
        let document =
            "{ links(first: 2) { edges { cursor node { id } } nextToken "
            + "pageInfo { hasNextPage hasPreviousPage endCursor startCursor } } }"
        let links = try members(try await data(document)["links"])
        #expect(try elements(links["edges"]).count == 2)
        #expect(
            try members(links["pageInfo"]) == [
                "hasNextPage": .boolean(false), "hasPreviousPage": .boolean(false), "endCursor": .null,
                "startCursor": .null,
            ])
        // One that may not be null has a text nevertheless.
        #expect(!text(links["nextToken"]).isEmpty)
    }

    @Test("An object whose key has several fields is found by all of them, wherever it is asked for")
    func keys() async throws {
        let document =
            #"{ a: pair(left: 1, right: "x") { left right name } b: pair(left: 1, right: "x") { name } "#
            + #"c: pair(left: 2, right: "x") { name } }"#
        let pairs = try await data(document)
        let (a, b, c) = (try members(pairs["a"]), try members(pairs["b"]), try members(pairs["c"]))
        #expect(a["left"] == .int(1) && text(a["right"]) == "x")
        #expect(a["name"] == b["name"] && a["name"] != c["name"])
    }

    @Test("What a mutation's input says within is said of the object, as its fields have it")
    func saidWithin() async throws {
        let server = ScriptedServer(schema: try Schema(parsing: shapes))
        let change = "mutation M($c: Change!) { change(input: $c) { id count code size } }"
        let variables = #"{"c": {"id": 7, "nested": {"count": 4, "code": 12, "size": 3}}}"#
        let changed = try members(
            try await data(change, variables, kind: .mutation, server: server)["change"])
        let expected: [String: Value] = [
            "id": .string("7"), "count": .int(4), "code": .string("12"), "size": .float(3),
        ]
        #expect(changed.mapValues { $0 == .int(3) ? .float(3) : $0 } == expected)
        let again = try members(try await data(#"{ item(id: "7") { id count code size } }"#, server: server)["item"])
        #expect(again == changed)
    }

    @Test("A query says nothing of an object but its key")
    func queriesSayNothing() async throws {
        let server = ScriptedServer(schema: try Schema(parsing: shapes))
        let document = #"{ items(kind: "k") { id code } }"#
        let first = try await data(document, server: server)
        let second = try await data(document, server: server)
        #expect(first == second)
    }

    @Test("The operation of the request's name is answered, and one that is not there is refused")
    func names() async throws {
        let document = "query A { item(id: 1) { id } } query B { item(id: 2) { id } }"
        #expect(text(try members(try await data(document, name: "B")["item"])["id"]) == "2")
        await #expect(throws: TransportError.self) { _ = try await data(document, name: "C") }
        await #expect(throws: TransportError.self) { _ = try await data("{ nothing }") }
        await #expect(throws: TransportError.self) { _ = try await data("{ item(id: 1) { id } }", "[]") }
        await #expect(throws: TransportError.self) {
            _ = try await data("query Q($id: ID!) { item(id: $id) { id } }", "{}")
        }
    }

    @Test("Selections of one field are merged, and a default counts as the argument")
    func merged() async throws {
        let document =
            "{ item(id: 1) { part { text } part { number } ...F a: part(n: 3) { text } b: part(n: 4) { text } } } "
            + "fragment F on Item { part { t: text } }"
        let item = try members(try await data(document)["item"])
        let part = try members(item["part"])
        #expect(Set(part.keys) == ["text", "number", "t"] && part["t"] == part["text"])
        #expect(try members(item["a"])["text"] == part["text"] && members(item["b"])["text"] != part["text"])
    }

    @Test("The fragments of an object's type apply, and no others")
    func fragments() async throws {
        let document =
            "{ either { __typename ... on Item { id } ... on Part { text } ... on Either { x: __typename } } }"
        let either = try members(try await data(document)["either"])
        let name = text(either["__typename"])
        #expect(Set(either.keys) == (name == "Item" ? ["__typename", "id", "x"] : ["__typename", "text", "x"]))
        #expect(text(either["x"]) == name)
    }

    @Test("A given value stands for a whole list or object")
    func given() async throws {
        let values: [String: Value] = [
            "Item.tags": ["a", "b"], "Item.data": ["k": [1, .null, true]], "Item.count": 5,
        ]
        let item = try members(try await data("{ item(id: 1) { tags data count } }", values: values)["item"])
        #expect(item == ["tags": ["a", "b"], "data": ["k": [1, .null, true]], "count": 5])
    }

    @Test("A given value stands for a field with selections as well: a list, an object, or none")
    func givenObjects() async throws {
        let values: [String: Value] = [
            "Query.items": [], "Query.either": .null, "Query.item": ["id": "7", "code": "c"], "Links.edges": [.null],
        ]
        let document = "{ items { id } either { __typename } item(id: 1) { id code } links { edges { cursor } } }"
        let found = try await data(document, values: values)
        let links: [String: Value] = ["edges": [.null]]
        #expect(found == ["items": [], "either": .null, "item": ["id": "7", "code": "c"], "links": .object(links)])
    }

    @Test("A field is left out by @skip or @include, also on fragments, and with both it takes both")
    func conditions() async throws {
        let document = """
            query Q($yes: Boolean!, $no: Boolean!) { item(id: 1) {
              a: code @skip(if: $yes) b: code @include(if: $no) c: code @skip(if: $no) @include(if: $yes)
              d: code @skip(if: $no) @include(if: $no)
              ... @include(if: $no) { e: code } ...F @skip(if: $yes) ... @include(if: $yes) { g: code }
            } }
            fragment F on Item { f: code }
            """
        let item = try members(try await data(document, #"{"yes": true, "no": false}"#)["item"])
        #expect(Set(item.keys) == ["c", "g"])
    }
}
