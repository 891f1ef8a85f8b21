import Testing

@testable import LarderGraphQL

@Suite("Values, and what is made of them")
struct ValueTests {
    @Test("An integer of any type is a whole number where 64 bits hold it, and its digits otherwise")
    func integers() {
        #expect(Value(7 as UInt8) == .int(7))
        #expect(Value(Int64.min) == .int(.min))
        #expect(Value(UInt64.max) == .number("18446744073709551615"))
    }

    @Test("What identifies an object has a text; null, lists and objects have none")
    func keyTexts() {
        #expect(Value.boolean(true).keyText == "true")
        #expect(Value.boolean(false).keyText == "false")
        #expect(Value.int(-3).keyText == "-3")
        #expect(Value.number("18446744073709551615").keyText == "18446744073709551615")
        for value in [.null, .list([.int(1)]), .object([:])] as [Value] { #expect(value.keyText == nil) }
    }

    @Test("Of a key that a literal gives twice the last value stays")
    func repeatedKeys() {
        #expect(Value(dictionaryLiteral: ("a", 1), ("b", 2), ("a", 3)) == .object(["a": .int(3), "b": .int(2)]))
    }

    @Test("The strings of a document are those of its operations and its fragments, wherever they stand")
    func strings() throws {
        let document = try Document(
            parsing: """
                query Q($a: String = "default" @on(s: "variable")) @on(s: "operation") {
                  field(s: "argument", list: ["element"], object: {s: "member"}) @on(s: "field")
                  ... @on(s: "inline") { inner(s: "inside") }
                  ...F @on(s: "spread")
                }
                fragment F on T @on(s: "fragment") { deep { field(s: "deep") } other(n: 1, e: ENUM) }
                """)
        #expect(
            document.strings.sorted() == [
                "argument", "deep", "default", "element", "field", "fragment", "inline", "inside", "member",
                "operation", "spread", "variable",
            ])
    }

    @Test("Lists and objects nest as deep as the greatest depth says, and no deeper", arguments: [true, false])
    func deepestValue(isList: Bool) {
        func nested(_ depth: Int) -> Value {
            (0..<depth).reduce(.null) { value, _ in isList ? .list([value]) : .object(["a": value]) }
        }
        #expect(nested(Value.greatestDepth).fault == nil)
        #expect(nested(Value.greatestDepth + 1).fault == "objects and lists nest deeper than 128 levels")
    }

    @Test("A trailing surrogate is half of a character only behind a leading one")
    func surrogates() {
        #expect(syntaxFault(#"{ a(b: "\uD83D\uDE00") }"#) == nil)
        for text in [#"\uDE00\uDE00"#, #"\uDE00\uD83D"#, #"\uD83D\uD83D"#, #"\uD83D"#] {
            #expect(syntaxFault("{ a(b: \"\(text)\") }") != nil)
        }
    }

    /// The plan of a document's first operation.
    private func plan(of text: String, _ schema: SchemaIndex) throws -> Plan {
        let document = try Document(parsing: text)
        return try Plan.compile(try #require(document.operations.first), of: document, schema, conditions: [:])
    }

    @Test("Which version a mutation changes is asked of a variable that is one input object, not of a list of them")
    func versionedInputs() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { a: Int }
                type Mutation { one(input: In): Todo many(input: [In]): Todo any(input: In): Any }
                type Todo @typePolicy(versioned: true) { id: ID! _version: Int }
                type Note @typePolicy(versioned: true) { id: ID! _version: Int }
                union Any = Todo | Note
                input In { id: ID _version: Int }
                """)
        func keys(_ text: String, _ variables: [String: Value]) throws -> [String] {
            VersionedInput.all(try plan(of: text, schema), variables, schema).map(\.key)
        }
        let input = Value.object(["id": .string("1")])
        let one = "mutation M($i: In) { one(input: $i) { id _version } }"
        #expect(try keys(one, ["i": input]) == ["Todo:1"])
        for version in [.int(2), .null] as [Value] {
            #expect(try keys(one, ["i": .object(["id": .string("1"), "_version": version])]) == [])
        }
        #expect(try keys("mutation M($i: [In]) { many(input: $i) { id _version } }", ["i": input]) == [])
        // Of which type the object is that is changed, only the answer says.
        let parts = "... on Todo { id _version } ... on Note { id _version }"
        #expect(try keys("mutation M($i: In) { any(input: $i) { __typename \(parts) } }", ["i": input]) == [])
    }

    @Test("The objects that a mutation names are those of its arguments, and of the input objects among them")
    func namedObjects() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { a: Int }
                type Mutation { one(id: ID): Todo many(input: In): Todo seat(row: Int, number: Int): Seat }
                type Todo { id: ID! }
                type Seat @typePolicy(keyFields: ["row", "number"]) { row: Int number: Int }
                input In { id: ID title: String }
                """)
        func names(_ text: String, _ variables: [String: Value] = [:]) throws -> [String] {
            try plan(of: text, schema).namedObjects(variables, schema)
        }
        #expect(try names("mutation { one(id: 7) { id } }") == ["Todo:7"])
        let many = "mutation M($i: In) { many(input: $i) { id } }"
        #expect(try names(many, ["i": .object(["id": .string("1")])]) == ["Todo:1"])
        #expect(try names(many, ["i": .object(["title": .string("1")])]) == [])
        let seat = #"Seat:{"row":"1","number":"2"}"#
        #expect(try names("mutation { seat(row: 1, number: 2) { row number } }") == [seat])
        #expect(try names("mutation { seat(row: 1) { row number } }") == [])
    }

    @Test("A mutation of several fields names the objects of each, and each of its input objects gets a version")
    func severalMutatedObjects() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { a: Int }
                type Mutation { one(input: In): Todo }
                type Todo @typePolicy(versioned: true) { id: ID! _version: Int }
                input In { id: ID _version: Int }
                """)
        let text = "mutation M($a: In, $b: In) { a: one(input: $a) { id _version } b: one(input: $b) { id _version } }"
        let plan = try plan(of: text, schema)
        let variables: [String: Value] = ["a": ["id": "1"], "b": ["id": "2"]]
        let inputs = VersionedInput.all(plan, variables, schema)
        #expect(inputs.map(\.variable).sorted() == ["a", "b"])
        #expect(inputs.map(\.key).sorted() == ["Todo:1", "Todo:2"])
        #expect(plan.namedObjects(variables, schema).sorted() == ["Todo:1", "Todo:2"])
    }

    @Test("A mutation is sent without a version where its input object has no field for one")
    func inputWithoutVersion() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { a: Int }
                type Mutation { one(input: In): Todo }
                type Todo @typePolicy(versioned: true) { id: ID! _version: Int }
                input In { id: ID }
                """)
        let plan = try plan(of: "mutation M($i: In) { one(input: $i) { id _version } }", schema)
        #expect(VersionedInput.all(plan, ["i": .object(["id": .string("1")])], schema).isEmpty)
    }

    @Test("The key of a page that begins at a number has the number, or its text where the argument is one")
    func pageKeys() {
        func key(isText: Bool) -> String {
            PageChain.Way(
                before: "items({\"from\":", after: "})", isText: isText, info: nil, has: nil, position: "next"
            ).key(at: 20)
        }
        #expect(key(isText: false) == #"items({"from":20})"#)
        #expect(key(isText: true) == #"items({"from":"20"})"#)
    }

    @Test("An operation that asks for what its type does not have is invalid to a plan, at the field's place")
    func unknownField() throws {
        let schema = try SchemaIndex(parsing: "type Query { a: Int }")
        let error = #expect(throws: PlanError.self) { try plan(of: "{ a\n b }", schema) }
        #expect(error?.code == .invalid)
        #expect(error?.location == Location(line: 2, column: 2))
    }

    @Test("A member of an input object whose variable was left out is no member, and one that is null is one")
    func leftOutMember() throws {
        let schema = try SchemaIndex(parsing: "type Query { a(in: In): Int } input In { x: Int y: Int deep: In }")
        let document = try Document(parsing: "query Q($x: Int) { a(in: {x: $x, y: 1, deep: {x: $x}}) }")
        let operation = try #require(document.operations.first)
        let plan = try Plan.compile(operation, of: document, schema, conditions: [:])
        func keys(_ variables: [String: Value]) throws -> [String] {
            let coerced = try operation.coerce(variables, in: schema)
            return OperationBinding(plan, variables: coerced, schema: schema).fieldKeys
        }
        #expect(try keys([:]) == [#"a({"in":{"deep":{},"y":1}})"#])
        #expect(try keys(["x": nil]) == [#"a({"in":{"deep":{"x":null},"x":null,"y":1}})"#])
        #expect(try keys(["x": 2]) == [#"a({"in":{"deep":{"x":2},"x":2,"y":1}})"#])
    }

    @Test("Of a page that has its objects, and edges to them, the objects are the list", arguments: [true, false])
    func listOfPage(edgesFirst: Bool) throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query @fieldPolicy(forField: "orders", paginationArgs: "first after") {
                  orders(first: Int, after: String): Orders }
                type Orders { nodes: [Order] edges: [Edge] pageInfo: PageInfo }
                type Edge { node: Order } type Order { id: ID! }
                type PageInfo { hasNextPage: Boolean endCursor: String }
                """)
        let lists = ["list: nodes { id }", "edges { node { id } }"]
        let text = """
            query Q($after: String) { orders(after: $after) {
              \((edgesFirst ? lists.reversed() : lists).joined(separator: " "))
              pageInfo { hasNextPage endCursor } } }
            """
        let plan = try ConnectionPlan(plan(of: text, schema), schema)
        #expect(plan.elements == ["list"] && plan.node == nil)
    }

    @Test("Names that are made of a field's and a type's do not meet where either has an underscore")
    func underscores() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { found: [Found] } union Found = P | Q | R scalar Z scalar Y_Z
                type P @typePolicy(keyFields: "x_Y") { x_Y: Z! } type Q @typePolicy(keyFields: "x") { x: Y_Z! }
                type R @typePolicy(keyFields: "x") { x: Int! }
                """)
        let document = try Document(parsing: "{ found { __typename } }")
        let operation = try #require(document.operations.first)
        let sent = document.forSending(operation, schema).document
        #expect(validate(sent, against: schema) == [])
        let text = sent.printed()
        for field in ["larder_x_Y_Z_1: x_Y", "larder_x_Y_Z_1_1: x", "larder_x_Int_1: x"] {
            #expect(text.contains("\(field)\n"), "\(text)")
        }
    }
}
