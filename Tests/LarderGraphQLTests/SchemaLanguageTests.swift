import LarderGraphQL
import Testing

@Suite("Schema definition language")
struct SchemaLanguageTests {
    @Test("A schema as Amplify writes it may use AppSync's scalars without declaring them")
    func amplifySchema() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Todo @model @auth(rules: [{ allow: owner, operations: [read] }]) @aws_cognito_user_pools {
                  id: ID! dueAt: AWSDateTime! on: AWSDate links: [AWSURL!] meta: AWSJSON
                }
                input Due { at: AWSTimestamp }
                type Query { todos(email: AWSEmail, due: Due): [Todo!]! }
                """)
        for name in ["AWSDateTime", "AWSDate", "AWSURL", "AWSJSON", "AWSTimestamp", "AWSEmail"] {
            #expect(schema.type(named: name).map { schema.types[$0].kind } == .scalar, "\(name)")
        }
        #expect(schema.type(named: "AWSPhone") == nil)
        let own = try SchemaIndex(parsing: "scalar AWSDate @specifiedBy(url: \"x\") type Query { on: AWSDate }")
        #expect(own.type(named: "AWSDate") != nil)
        #expect(throws: SchemaError.self) { try SchemaIndex(parsing: "type Query { on: AWSDecade }") }
    }

    @Test("Every kind of definition comes back from the parser")
    func kitchenSink() throws {
        let text = #"""
            """The schema""" schema @a { query: Q mutation: M subscription: S }
            "An object" type Q implements & A & B @d { "A field" f("An argument" x: Int = 1 @e): [Q!]! @g  h: ID }
            interface A implements B { h: ID } scalar Date @specifiedBy(url: "x")
            union U @u = | Q | M  enum E { "One" ONE @deprecated TWO } input I @i { a: Int! = 3 @j b: [I] }
            "A directive" directive @k(l: Int) repeatable on | FIELD | QUERY
            extend schema @x extend type Q @y extend enum E { THREE }
            """#
        let document = try SchemaDocument(parsing: text)
        #expect(document.schemas.map(\.isExtension) == [false, true])
        #expect(document.schemas[0].description == "The schema")
        #expect(document.schemas[0].roots.map(\.type.name) == ["Q", "M", "S"])
        #expect(document.types.map(\.name) == ["Q", "A", "Date", "U", "E", "I", "Q", "E"])
        #expect(
            document.types.map(\.kind) == [
                .object, .interface, .scalar, .union, .enumeration, .inputObject, .object, .enumeration,
            ])
        #expect(document.types.map(\.isExtension) == [false, false, false, false, false, false, true, true])
        let object = document.types[0]
        #expect(object.description == "An object")
        #expect(object.interfaces.map(\.name) == ["A", "B"])
        #expect(object.fields.map(\.name) == ["f", "h"])
        #expect(object.fields[0].description == "A field")
        #expect(object.fields[0].type.description == "[Q!]!")
        #expect(object.fields[0].arguments.map(\.defaultValue) == [.int("1")])
        #expect(object.fields[0].arguments.map(\.description) == ["An argument"])
        #expect(document.types[3].members.map(\.name) == ["Q", "M"])
        #expect(document.types[4].enumValues.map(\.name) == ["ONE", "TWO"])
        #expect(document.types[5].inputFields.map(\.type.description) == ["Int!", "[I]"])
        #expect(document.directives[0].isRepeatable)
        #expect(document.directives[0].places == [.field, .query])
    }

    @Test(
        "A text that is no schema is refused where it goes wrong",
        arguments: [
            ("type", "1:5: Expected Name, found the end of the document"),
            ("type T {}", "1:9: Expected Name, found '}'"),
            ("type T { a }", "1:12: Expected ':', found '}'"),
            ("type T { a: }", "1:13: Expected Name, found '}'"),
            ("type T { a(): Int }", "1:12: Expected Name, found ')'"),
            ("type T { a(b: Int = $c): Int }", "1:21: Expected a constant value, found a variable"),
            ("type T implements { a: Int }", "1:19: Expected Name, found '{'"),
            ("type T implements A B { a: Int }", "1:21: Expected a type system definition, found 'B'"),
            ("union U = ", "1:11: Expected Name, found the end of the document"),
            ("enum E { true }", "1:10: Expected an enum value, found 'true'"),
            ("schema", "1:7: Expected '{', found the end of the document"),
            ("schema { query Q }", "1:16: Expected ':', found 'Q'"),
            ("schema { other: Q }", "1:10: Expected 'query', 'mutation' or 'subscription', found 'other'"),
            ("directive @a", "1:13: Expected 'on', found the end of the document"),
            ("directive @a on NOWHERE", "1:17: Expected a directive location, found 'NOWHERE'"),
            ("extend directive @a on FIELD", "1:8: Expected a type system definition, found 'directive'"),
            ("extend type T", "1:14: Expected what the extension adds, found the end of the document"),
            ("\"text\" extend type T { a: Int }", "1:8: Expected a type system definition, found 'extend'"),
            ("query { a }", "1:1: Expected a type system definition, found 'query'"),
            ("{ a }", "1:1: Expected a type system definition, found '{'"),
        ])
    func faults(text: String, fault: String) {
        #expect(schemaFault(text) == "syntax " + fault)
    }

    @Test(
        "Definitions that do not fit together are refused with name and place",
        arguments: [
            ("", "root -: The schema has no query root"),
            ("type T { a: Int }", "root -: The schema has no query root"),
            ("schema { mutation: T } type T { a: Int }", "root 1:1: The schema has no query root"),
            ("schema { query: U }", "unknownType 1:17: Unknown type U"),
            ("schema { query: Int }", "root 1:17: The query root Int is no object type"),
            ("schema { query: Q query: Q } type Q { a: Int }", "duplicate 1:26: The query root is defined twice"),
            ("type Query { a: X }", "unknownType 1:14: Unknown type X of Query.a"),
            ("type Query { a(b: X): Int }", "unknownType 1:16: Unknown type X of Query.a.b"),
            ("type Query { a: Int } type Query { b: Int }", "duplicate 1:23: Type Query is defined twice"),
            ("type Query { a: Int a: Int }", "duplicate 1:21: Field Query.a is defined twice"),
            ("type Query { a: Int } extend type Query { a: Int }", "duplicate 1:43: Field Query.a is defined twice"),
            ("type Query { a(b: Int, b: Int): Int }", "duplicate 1:24: Argument b of Query.a is defined twice"),
            ("type Query { a: E } enum E { A A }", "duplicate 1:32: Enum value E.A is defined twice"),
            ("type Query { a: Int } input I { a: Int a: Int }", "duplicate 1:40: Field I.a is defined twice"),
            ("type Query { a: Int } union U = Query | Query", "duplicate 1:41: Member Query of U is defined twice"),
            (
                "type Query { a: Int } directive @d on FIELD directive @d on FIELD",
                "duplicate 1:45: Directive @d is defined twice"
            ),
            (
                "type Query { a: Int } extend type T { a: Int }",
                "unknownType 1:23: Type T is extended and nowhere defined"
            ),
            (
                "type Query { a: Int } extend input Query { b: Int }",
                "invalidType 1:23: Query is extended as input object and defined as object type"
            ),
            ("type Query { a: I } input I { a: Int }", "invalidType 1:14: Field Query.a is of input type I"),
            (
                "type Query { a(b: Query): Int }",
                "invalidType 1:16: b of Query.a is of Query, which is no input type"
            ),
            ("type Query { a: Int } union U = Int", "invalidType 1:33: Member Int of union U is no object type"),
            ("type Query", "invalidType 1:1: object type Query has nothing in it"),
            ("type Query { a: Int } union U", "invalidType 1:23: union U has nothing in it"),
            (
                "type Query implements Int { a: Int }",
                "implementation 1:23: Query implements Int, which is no interface"
            ),
            (
                "type Query { a: Int } interface A implements A { a: Int }",
                "implementation 1:46: Interface A implements itself"
            ),
            (
                "type Query implements A & A { a: Int } interface A { a: Int }",
                "duplicate 1:27: Query implements A twice"
            ),
            (
                "type Query implements A { b: Int } interface A { a: Int }",
                "implementation 1:1: Query implements A and has no field a"
            ),
            (
                "type Query implements A { a: String } interface A { a: Int }",
                "implementation 1:1: Query.a is String, and A.a is Int"
            ),
            (
                "type Query implements A { a: Int } interface A { a: Int! }",
                "implementation 1:1: Query.a is Int, and A.a is Int!"
            ),
            (
                "type Query implements A { a: Int } interface A { a: [Int] }",
                "implementation 1:1: Query.a is Int, and A.a is [Int]"
            ),
            (
                "type Query implements A { a: Int } interface A { a(b: Int): Int }",
                "implementation 1:1: Query.a has no argument b, which A.a has"
            ),
            (
                "type Query implements A { a(b: Int!): Int } interface A { a(b: Int): Int }",
                "implementation 1:1: Argument b of Query.a is Int!, and that of A.a is Int"
            ),
            (
                "type Query implements A { a(b: Int!): Int } interface A { a: Int }",
                "implementation 1:1: Query.a requires argument b, which A.a does not have"
            ),
            (
                "type Query implements A { a: Int } interface A implements B { a: Int } interface B { a: Int }",
                "implementation 1:1: Query implements A and not B, which A implements"
            ),
        ])
    func misfits(text: String, fault: String) {
        #expect(schemaFault(text) == fault)
    }

    @Test(
        "Covariant fields, optional further arguments and unknown directives are let pass",
        arguments: [
            "type Query implements A { a: [Query!]! } interface A { a: [A] }",
            "type Query implements A { a(b: Int, c: Int! = 1): Int! } interface A { a(b: Int): Int }",
            "type Query implements A { a: Query } interface A { a: U } union U = Query",
            "type Query @made(up: [1, {a: B}]) { a: Int @too }",
            "scalar Int scalar ID directive @skip(if: Boolean!) on FIELD type __Schema { a: Int } type Query { a: Int }",
            "extend schema { mutation: M } type M { a: Int } type Query { a: Int }",
        ])
    func allowed(text: String) {
        #expect(schemaFault(text) == nil)
    }

    @Test("What the language itself defines is as it says, whatever a text makes of it")
    func redefined() throws {
        let schema = try SchemaIndex(
            parsing: "type __Schema { a: Int } directive @skip(unless: Int) on QUERY type Query { a: Int }")
        let type = try #require(schema.type(named: "__Schema"))
        #expect(schema.field(named: "a", of: type) == nil)
        #expect(schema.field(named: "types", of: type) != nil)
        #expect(schema.directive(named: "skip")?.arguments.map(\.name) == ["if"])
    }

    @Test("An error in a second text names that text")
    func secondText() {
        #expect {
            _ = try SchemaIndex(
                parsing: ["type Query { a: Int }", "extend type Qery { b: Int }"], sourceNames: ["a", "b"])
        } throws: { "\($0)" == "b:1:1: Type Qery is extended and nowhere defined" }
    }

    @Test("Extensions add to their types, from other texts and before the definition too")
    func extensions() throws {
        let schema = try SchemaIndex(parsing: [
            "extend type Query { b: E } extend interface I { c: Int } extend union U = Other",
            """
            type Query { a: Int } interface I { id: ID } union U = Query enum E { A } input In { a: Int } scalar S
            type Other implements I { id: ID c: Int }
            """,
            "extend type Query implements I { id: ID c: Int } extend enum E { B } extend input In { b: Int }",
        ])
        let query = schema.types[schema.queryType]
        #expect(query.fields.map(\.name) == ["a", "b", "id", "c"])
        let other = try #require(schema.type(named: "Other"))
        let interface = try #require(schema.type(named: "I"))
        let union = try #require(schema.type(named: "U"))
        #expect(query.interfaces == [interface])
        #expect(schema.types[interface].possibleTypes == [schema.queryType, other].sorted())
        #expect(schema.types[union].possibleTypes == [schema.queryType, other].sorted())
        #expect(schema.types[other].possibleTypes == [other])
        #expect(schema.type(named: "E").map { schema.types[$0].enumValues } == ["A", "B"])
        #expect(schema.type(named: "In").map { schema.types[$0].inputFields.map(\.name) } == ["a", "b"])
    }

    @Test("Root types have their default names, or the names that the schema gives")
    func roots() throws {
        let text = "schema { query: A subscription: B } type A { a: Int } type B { a: Int } type Mutation { a: Int }"
        let named = try SchemaIndex(parsing: text)
        #expect(named.types[named.queryType].name == "A")
        #expect(named.mutationType == nil)
        #expect(named.rootType(of: .subscription) == named.type(named: "B"))
        let usual = try SchemaIndex(parsing: "type Query { a: Int } type Mutation { a: Int } scalar Subscription")
        #expect(usual.mutationType == usual.type(named: "Mutation"))
        #expect(usual.subscriptionType == nil)
    }

    @Test("An extension of the schema may repeat a root that has its default name, and give it no other")
    func extendedRoots() throws {
        let types = "type Query { a: Int } type Other { a: Int } "
        #expect(schemaFault(types + "extend schema { query: Query }") == nil)
        #expect(
            schemaFault(types + "extend schema { query: Other }")
                == "duplicate 1:68: The query root is defined twice")
        #expect(
            schemaFault(types + "schema { query: Query } extend schema { query: Query }")
                == "duplicate 1:92: The query root is defined twice")
    }

    @Test("An extension of the schema that adds nothing is refused")
    func emptyExtension() {
        #expect(schemaFault("type Query { a: Int } extend schema")?.contains("what the extension adds") == true)
        #expect(schemaFault("type Query { a: Int } directive @d on SCHEMA extend schema @d") == nil)
    }

    @Test("A type nests sixty lists, each with elements that are null or not, and no more")
    func deepestLists() throws {
        func text(_ lists: Int) -> String {
            let (open, close) = (String(repeating: "[", count: lists), String(repeating: "]", count: lists))
            return "type Query { a: \(open)Int!\(close) }"
        }
        let schema = try SchemaIndex(parsing: text(60))
        let field = try #require(schema.field(named: "a", of: schema.queryType))
        #expect(field.type.listDepth == 60)
        #expect(schema.description(of: field.type).filter { $0 == "!" }.count == 1)
        #expect(try SchemaIndex(serialized: schema.serialized()) == schema)
        #expect(schemaFault(text(61)) == "invalidType 1:14: Query.a nests more than 60 lists")
    }

    @Test("A directive's arguments are found by name")
    func directiveArguments() throws {
        let schema = try SchemaIndex(parsing: "type Query { a: Int } directive @d(one: Int two: String!) on FIELD")
        let directive = try #require(schema.directive(named: "d"))
        #expect(directive.argument(named: "two")?.isRequired == true)
        #expect(directive.argument(named: "one")?.isRequired == false)
        #expect(directive.argument(named: "three") == nil)
    }

    @Test("Fields are found by name, the meta fields of introspection among them")
    func fields() throws {
        let text = "type Query { a(b: [Int!] = [1]): [[U!]]! } union U = T type T { c: Int }"
        let schema = try SchemaIndex(parsing: text)
        let query = schema.queryType
        let field = try #require(schema.field(named: "a", of: query))
        #expect(schema.description(of: field.type) == "[[U!]]!")
        #expect(field.type.listDepth == 2)
        #expect(field.type.isNonNull)
        #expect(field.type.element?.isNonNull == false)
        #expect(field.type.element?.element?.isNonNull == true)
        #expect(field.argument(named: "b")?.defaultValue == .list([.int("1")]))
        #expect(field.argument(named: "b")?.isRequired == false)
        let union = try #require(schema.type(named: "U"))
        #expect(schema.field(named: "__typename", of: union).map { schema.description(of: $0.type) } == "String!")
        #expect(schema.field(named: "__schema", of: query).map { schema.description(of: $0.type) } == "__Schema!")
        let type = try #require(schema.field(named: "__type", of: query))
        #expect(type.arguments.map(\.name) == ["name"])
        #expect(type.arguments.map { schema.description(of: $0.type) } == ["String!"])
        // There is no type of every name.
        #expect(schema.description(of: type.type) == "__Type")
        #expect(schema.field(named: "__schema", of: union) == nil)
        #expect(schema.field(named: "c", of: union) == nil)
        #expect(schema.field(named: "__nothing", of: query) == nil)
    }
}
