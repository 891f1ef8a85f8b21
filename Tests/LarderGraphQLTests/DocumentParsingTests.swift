import LarderGraphQL
import Testing

@Suite("Executable documents")
struct DocumentParsingTests {
    @Test("Every part of a document comes back from the parser")
    func kitchenSink() throws {
        let text = """
            query Q($id: ID! = "1", $list: [[Int!]]! @a, $in: In = {a: [1, E], b: null}) @b(c: $id) {
              alias: field(x: $id, y: {z: [$list, true]}) @include(if: $in) { ...F @d ... on T @e { f } ... { g } }
            }
            mutation { m } subscription S { s }
            fragment F on T @f { on: fragment query type }
            """
        let document = try Document(parsing: text)
        #expect(document.operations.map(\.kind) == [.query, .mutation, .subscription])
        #expect(document.operations.map(\.name) == ["Q", nil, "S"])
        let query = document.operations[0]
        #expect(
            query.variables == [
                VariableDefinition(name: "id", type: .nonNull(.named("ID")), defaultValue: .string("1")),
                VariableDefinition(
                    name: "list", type: .nonNull(.list(.list(.nonNull(.named("Int"))))),
                    directives: [Directive(name: "a")]),
                VariableDefinition(
                    name: "in", type: .named("In"),
                    defaultValue: .object([
                        .init(name: "a", value: .list([.int("1"), .enumeration("E")])), .init(name: "b", value: .null),
                    ])),
            ])
        #expect(query.directives == [Directive(name: "b", arguments: [Argument(name: "c", value: .variable("id"))])])
        let field = Field(
            alias: "alias", name: "field",
            arguments: [
                Argument(name: "x", value: .variable("id")),
                Argument(
                    name: "y", value: .object([.init(name: "z", value: .list([.variable("list"), .boolean(true)]))])),
            ],
            directives: [Directive(name: "include", arguments: [Argument(name: "if", value: .variable("in"))])],
            selections: [
                .fragmentSpread(FragmentSpread(name: "F", directives: [Directive(name: "d")])),
                .inlineFragment(
                    InlineFragment(
                        typeCondition: "T", directives: [Directive(name: "e")],
                        selections: [.field(Field(name: "f"))])),
                .inlineFragment(InlineFragment(selections: [.field(Field(name: "g"))])),
            ])
        #expect(query.selections == [.field(field)])
        #expect(field.responseKey == "alias")
        #expect(
            document.fragments == [
                FragmentDefinition(
                    name: "F", typeCondition: "T", directives: [Directive(name: "f")],
                    selections: [
                        .field(Field(alias: "on", name: "fragment")), .field(Field(name: "query")),
                        .field(Field(name: "type")),
                    ])
            ])
        #expect(query.variables.map(\.type.description) == ["ID!", "[[Int!]]!", "In"])
    }

    @Test("Each part knows where it starts")
    func locations() throws {
        let text =
            "query($a: Int\n  $b: Int @x) {\n  a(b: 1\n    c: 2) @d\n  ...F\n"
            + "  ... on T { e }\n}\nfragment F on T { g }"
        let document = try Document(parsing: text)
        let query = document.operations[0]
        #expect(query.location == Location(line: 1, column: 1))
        #expect(query.variables.map(\.location) == [Location(line: 1, column: 7), Location(line: 2, column: 3)])
        #expect(query.variables[1].directives[0].location == Location(line: 2, column: 11))
        #expect(document.fragments[0].location == Location(line: 8, column: 1))
        guard case .field(let field) = query.selections[0], case .fragmentSpread(let spread) = query.selections[1],
            case .inlineFragment(let inline) = query.selections[2]
        else {
            Issue.record("the selections are of other kinds")
            return
        }
        #expect(field.location == Location(line: 3, column: 3))
        #expect(field.arguments.map(\.location) == [Location(line: 3, column: 5), Location(line: 4, column: 5)])
        #expect(field.directives[0].location == Location(line: 4, column: 11))
        #expect(spread.location == Location(line: 5, column: 3))
        #expect(inline.location == Location(line: 6, column: 3))
    }

    @Test(
        "A text that is no document is refused where it goes wrong",
        arguments: [
            ("", "1:1: Expected an operation or a fragment, found the end of the document"),
            (" \n # only a comment", "2:18: Expected an operation or a fragment, found the end of the document"),
            ("{", "1:2: Expected Name, found the end of the document"),
            ("{}", "1:2: Expected Name, found '}'"),
            ("query Q {}", "1:10: Expected Name, found '}'"),
            ("{ a { } }", "1:7: Expected Name, found '}'"),
            ("{ a } }", "1:7: Expected an operation or a fragment, found '}'"),
            ("{ a: }", "1:6: Expected Name, found '}'"),
            ("{ a() }", "1:5: Expected Name, found ')'"),
            ("{ a(b) }", "1:6: Expected ':', found ')'"),
            ("{ a(b:) }", "1:7: Expected a value, found ')'"),
            ("{ a(b: [1) }", "1:10: Expected a value, found ')'"),
            ("{ a(b: {c}) }", "1:10: Expected ':', found '}'"),
            ("{ a(b: {\"c\": 1}) }", "1:9: Expected Name, found a string"),
            ("{ a(b: $) }", "1:9: Expected Name, found ')'"),
            ("{ ... }", "1:7: Expected '{', found '}'"),
            ("{ ...on }", "1:9: Expected Name, found '}'"),
            ("query() { a }", "1:7: Expected '$', found ')'"),
            ("query($a) { a }", "1:9: Expected ':', found ')'"),
            ("query($a: ) { a }", "1:11: Expected Name, found ')'"),
            ("query($a: [Int) { a }", "1:15: Expected ']', found ')'"),
            ("query($a: Int!!) { a }", "1:15: Expected '$', found '!'"),
            ("query($a: Int = $b) { a }", "1:17: Expected a constant value, found a variable"),
            ("query($a: Int = [1, $b]) { a }", "1:21: Expected a constant value, found a variable"),
            ("query($a: Int @b(c: $d)) { a }", "1:21: Expected a constant value, found a variable"),
            ("query Q", "1:8: Expected '{', found the end of the document"),
            ("querry { a }", "1:1: Expected an operation or a fragment, found 'querry'"),
            ("type T { a: Int }", "1:1: Expected an operation or a fragment, found 'type'"),
            ("fragment on on T { a }", "1:10: Expected a fragment's name, found 'on'"),
            ("fragment F { a }", "1:12: Expected 'on', found '{'"),
            ("fragment F on { a }", "1:15: Expected Name, found '{'"),
            ("{ a @ }", "1:7: Expected Name, found '}'"),
            ("{ a @b() }", "1:8: Expected Name, found ')'"),
            ("\"text\" { a }", "1:1: Expected an operation or a fragment, found a string"),
            ("{ a\n  b(\n    c: ]\n}", "3:8: Expected a value, found ']'"),
        ])
    func faults(text: String, fault: String) {
        #expect(syntaxFault(text) == fault)
    }

    @Test("An error names its source")
    func sourceName() {
        #expect(
            throws: SyntaxError(
                message: "Expected Name, found '}'", location: Location(line: 1, column: 2), sourceName: "a.graphql")
        ) {
            try Document(parsing: "{}", sourceName: "a.graphql")
        }
        let error = SyntaxError(message: "m", location: Location(line: 3, column: 4), sourceName: "a.graphql")
        #expect("\(error)" == "a.graphql:3:4: m")
    }

    @Test("Documents are equal by what they say, wherever it stands")
    func equality() throws {
        let one = try Document(parsing: "{ a(b: 1, c: \"x\") }")
        #expect(try Document(parsing: "query\n{ a,\n(b:1 c:\"\"\"x\"\"\") }") == one)
        #expect(try Document(parsing: "{ a(b: 1, c: \"y\") }") != one)
        #expect(try Document(parsing: "{ a(b: 1.0, c: \"x\") }") != one)
    }

    @Test(
        "Printing is canonical and parses to the same document",
        arguments: [
            ("query{a}", "{\n  a\n}\n"),
            ("query Q{a b:c}", "query Q {\n  a\n  b: c\n}\n"),
            ("mutation($a:[Int!]=[1]@x){a(b:$a)}", "mutation($a: [Int!] = [1] @x) {\n  a(b: $a)\n}\n"),
            (
                "query @a{...F@b ...on T@c{d}...{e}}fragment F on T@d{f{g}}",
                "query @a {\n  ...F @b\n  ... on T @c {\n    d\n  }\n  ... {\n    e\n  }\n}\n\n"
                    + "fragment F on T @d {\n  f {\n    g\n  }\n}\n"
            ),
            (
                #"{a(b:{c:E,d:[]e:{}}f:"q\"\\\n\t\u0001é😀\u007f")}"#,
                "{\n  a(b: {c: E, d: [], e: {}}, f: \"q\\\"\\\\\\n\\t\\u0001é😀\\u007F\")\n}\n"
            ),
            ("{a}query{b}", "{\n  a\n}\n\n{\n  b\n}\n"),
        ])
    func printing(text: String, printed: String) throws {
        let document = try Document(parsing: text)
        #expect(document.printed() == printed)
        #expect(try Document(parsing: printed) == document)
    }

    @Test("A rewritten document prints what was added")
    func rewriting() throws {
        var document = try Document(parsing: "{ hero { name } }")
        guard case .field(var hero) = document.operations[0].selections[0] else { return }
        hero.selections.insert(.field(Field(name: "__typename")), at: 0)
        document.operations[0].selections[0] = .field(hero)
        #expect(document.printed() == "{\n  hero {\n    __typename\n    name\n  }\n}\n")
    }
}
