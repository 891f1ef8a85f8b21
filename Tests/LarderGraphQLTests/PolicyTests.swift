import LarderGraphQL
import Testing

@Suite("Key fields and field policies")
struct PolicyTests {
    static let base = """
        type Query {
          recipe(id: ID, input: In, list: [In], at: [ID!]): Recipe recipes(ids: [ID!], first: Int): [Recipe] n: Int
        }
        input In { id: ID deep: In } interface Node { id: ID! } interface Named { name: String slug: String }
        type Recipe implements Node & Named { id: ID! name: String slug: String by: Author tags: [String] }
        type Author implements Named { name: String slug: String } union Any = Recipe | Author
        """

    private func keyFields(_ type: String, _ policies: String) throws -> [String]? {
        let schema = try SchemaIndex(parsing: [Self.base, policies])
        return schema.type(named: type).flatMap { schema.types[$0].keyFields }
    }

    @Test("A field named id identifies an object where nothing else is said")
    func defaultKey() throws {
        #expect(try keyFields("Recipe", "") == ["id"])
        #expect(try keyFields("Node", "") == ["id"])
        #expect(try keyFields("Author", "") == nil)
        #expect(try keyFields("Any", "") == nil)
    }

    @Test(
        "Key fields are a string, names with spaces between them, or a list",
        arguments: [
            (#""slug""#, ["slug"]), (#""name slug""#, ["name", "slug"]), (#"["slug", "name"]"#, ["slug", "name"]),
        ])
    func forms(argument: String, names: [String]) throws {
        #expect(try keyFields("Recipe", "extend type Recipe @typePolicy(keyFields: \(argument))") == names)
    }

    @Test("No key fields say that objects have no identity", arguments: ["[]", "\"\"", "\" \""])
    func noIdentity(argument: String) throws {
        #expect(try keyFields("Recipe", "extend type Recipe @typePolicy(keyFields: \(argument))") == nil)
    }

    @Test("An object type inherits its interfaces' key fields, unless it has its own")
    func inheritance() throws {
        let named = "extend interface Named @typePolicy(keyFields: \"slug\")"
        #expect(try keyFields("Author", named) == ["slug"])
        #expect(try keyFields("Recipe", named) == ["slug"])
        #expect(try keyFields("Recipe", named + " extend type Recipe @typePolicy(keyFields: \"name\")") == ["name"])
        let both = named + " extend interface Node @typePolicy(keyFields: \"id\")"
        #expect(
            schemaFault(Self.base, both)
                == "policy -: Recipe needs key fields of its own: those of Node and Named differ")
    }

    @Test("An object type inherits its interfaces' field policies, unless they differ and it has none of its own")
    func inheritedFieldPolicies() throws {
        func fault(_ first: String, _ second: String, own: String = "") -> String? {
            schemaFault(
                """
                type Query { one: One }
                interface A @fieldPolicy(forField: "node", keyArgs: ["\(first)"]) { node(a: ID b: ID): One }
                interface B @fieldPolicy(forField: "node", keyArgs: ["\(second)"]) { node(a: ID b: ID): One }
                type One implements A & B \(own) { id: ID! node(a: ID b: ID): One }
                """)
        }
        #expect(fault("a", "b") == "policy -: One.node needs a field policy of its own: its interfaces' differ")
        #expect(fault("a", "a") == nil)
        #expect(fault("a", "b", own: #"@fieldPolicy(forField: "node", keyArgs: ["b"])"#) == nil)
    }

    @Test("A type's field has the policies of its interface's field, unless the type says otherwise")
    func policiesOfInterfaceFields() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { shop: Shop stall: Stall }
                interface Market { cook(id: ID!): Cook times: Times }
                extend interface Market @fieldPolicy(forField: "cook", keyArgs: "id")
                extend interface Market @fieldPolicy(forField: "times", parts: merge)
                type Shop implements Market { cook(id: ID!): Cook times: Times }
                type Stall implements Market @fieldPolicy(forField: "times", parts: replace) {
                  cook(id: ID!): Cook times: Times
                }
                type Cook { id: ID! } type Times { open: Int }
                """)
        for (type, parts) in [("Shop", PartPolicy.merge), ("Stall", .replace)] {
            let id = try #require(schema.type(named: type))
            #expect(schema.field(named: "cook", of: id)?.policy == FieldPolicy(keyArgs: ["id"]))
            #expect(schema.field(named: "times", of: id)?.parts == parts)
        }
    }

    @Test("Of several policies at one place the last counts, and that of an extension before the definition's")
    func laterPolicy() throws {
        let (name, slug) = (#"@typePolicy(keyFields: "name")"#, #"@typePolicy(keyFields: "slug")"#)
        #expect(try keyFields("Recipe", "extend type Recipe \(name) \(slug)") == ["slug"])
        #expect(try keyFields("Recipe", "extend type Recipe \(slug) extend type Recipe \(name)") == ["name"])
        let defined = try SchemaIndex(
            parsing: "extend type A \(name) type Query { a: A } type A \(slug) { name: ID slug: ID }")
        #expect(defined.type(named: "A").map { defined.types[$0].keyFields } == ["name"])
        let schema = try SchemaIndex(parsing: [
            Self.base,
            """
            extend type Query @fieldPolicy(forField: "recipe", keyArgs: "id")
            extend type Query @fieldPolicy(forField: "recipe", keyArgs: "input.id")
            """,
        ])
        let policy = FieldPolicy(keyArgs: ["input.id"])
        #expect(schema.field(named: "recipe", of: schema.queryType)?.policy == policy)
    }

    @Test("A policy may say that objects have no versions, as they have where none speaks of it")
    func unversioned() throws {
        let schema = try SchemaIndex(parsing: [Self.base, "extend type Recipe @typePolicy(versioned: false)"])
        let recipe = try #require(schema.type(named: "Recipe"))
        #expect(!schema.types[recipe].isVersioned)
        #expect(
            schemaFault(Self.base, "extend type Recipe @typePolicy(versioned: 0)")
                == "policy 1:20: versioned of @typePolicy is no Boolean")
    }

    @Test("A field policy names arguments, paths into them, and pages")
    func fieldPolicies() throws {
        let schema = try SchemaIndex(parsing: [
            Self.base,
            """
            extend type Query @fieldPolicy(forField: "recipe", keyArgs: ["input.deep.id"])
              @fieldPolicy(forField: "recipes", keyArgs: "ids", paginationArgs: ["first"])
            """,
        ])
        let policies = schema.types[schema.queryType].fieldPolicies
        #expect(
            policies == [
                "recipe": FieldPolicy(keyArgs: ["input.deep.id"]),
                "recipes": FieldPolicy(keyArgs: ["ids"], paginationArgs: ["first"]),
            ])
        #expect(policies["recipe"]?.keyArgs.first?.components == ["input", "deep", "id"])
        #expect(schema.field(named: "recipe", of: schema.queryType)?.policy == policies["recipe"])
    }

    @Test(
        "Offsets and the numbers of pages go by either of two names",
        arguments: [("offset", .offset), ("skip", .offset), ("page", .page), ("pageNumber", .page)]
            as [(String, Pagination.Kind)])
    func pageNames(name: String, kind: Pagination.Kind) throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query @fieldPolicy(forField: "list", paginationArgs: "limit \(name)") {
                  list(limit: Int, \(name): Int): [Int]
                }
                """)
        let field = try #require(schema.field(named: "list", of: schema.queryType))
        let pagination = try #require(schema.pagination(of: field))
        #expect(pagination.kind == kind && pagination.backward == nil)
        #expect(pagination.forward.position == name && pagination.forward.limit == "limit")
    }

    @Test("A field of the query root asks for the object whose key fields its arguments are")
    func impliedPolicies() throws {
        let text = """
            type Query {
              movie(id: ID!): Movie seat(row: Int!, number: Int!): Seat found(text: String, id: ID!): Movie
              some(id: ID!): [Movie] any(id: ID!): Node typed(id: Int!): Movie many(id: [ID!]): Movie other(id: ID!): Movie
              all: Movie
            }
            type Mutation { movie(id: ID!): Movie }
            interface Node { id: ID! } type Movie implements Node { id: ID! similar(id: ID!): Movie }
            type Seat @typePolicy(keyFields: "number row") { row: Int! number: Int! }
            extend type Query @fieldPolicy(forField: "other", keyArgs: [])
            """
        let schema = try SchemaIndex(parsing: text)
        #expect(
            schema.types[schema.queryType].fieldPolicies == [
                "movie": FieldPolicy(keyArgs: ["id"]), "seat": FieldPolicy(keyArgs: ["number", "row"]),
                "other": FieldPolicy(keyArgs: []),
            ])
        for type in ["Mutation", "Movie"] {
            #expect(try #require(schema.type(named: type).map { schema.types[$0].fieldPolicies }) == [:])
        }
        let named = try SchemaIndex(parsing: text + " extend type Movie @typePolicy(keyFields: [])")
        #expect(named.types[named.queryType].fieldPolicies.keys.sorted() == ["other", "seat"])
    }

    @Test("A field policy that names a field alone says that it asks for no object by its arguments")
    func barePolicy() throws {
        let text = "type Query { one(id: ID!): One two(id: ID!): One } type One { id: ID! } "
        let schema = try SchemaIndex(parsing: text + #"extend type Query @fieldPolicy(forField: "two")"#)
        #expect(schema.field(named: "one", of: schema.queryType)?.policy?.keyArgs.isEmpty == false)
        #expect(schema.field(named: "two", of: schema.queryType)?.policy == FieldPolicy(keyArgs: []))
    }

    @Test("The greatest age of types and fields is kept")
    func cacheControl() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query @cacheControl(maxAge: 60) { a: Int @cacheControl(maxAge: 5, scope: PRIVATE) b: Int
                c: Int @cacheControl(maxAge: 99999999999999999999) }
                """)
        #expect(schema.types[schema.queryType].maxAge == 60)
        #expect(schema.types[schema.queryType].fields.map(\.maxAge) == [5, nil, Int(Int32.max)])
    }

    @Test("A greatest age may be 0 seconds")
    func noAge() throws {
        let schema = try SchemaIndex(parsing: "type Query @cacheControl(maxAge: 0) { a: Int @cacheControl(maxAge: 0) }")
        #expect(schema.types[schema.queryType].maxAge == 0)
        #expect(schema.types[schema.queryType].fields.map(\.maxAge) == [0])
    }

    @Test("Of several greatest ages at one place the last counts, and that of an extension before the definition's")
    func laterAge() throws {
        let twice = "@cacheControl(maxAge: 5) @cacheControl(maxAge: 6)"
        let text = "type Query \(twice) { a: Int \(twice) }"
        let schema = try SchemaIndex(parsing: text)
        #expect(schema.types[schema.queryType].maxAge == 6)
        #expect(schema.types[schema.queryType].fields.map(\.maxAge) == [6])
        let extended = try SchemaIndex(parsing: text + " extend type Query @cacheControl(maxAge: 7)")
        #expect(extended.types[extended.queryType].maxAge == 7)
    }

    @Test(
        "A greatest age that is no number of seconds is an error at the directive",
        arguments: [#""60""#, "1.5", "-1", "true", "none", "[60]"])
    func cacheControlAge(age: String) {
        for text in [
            "extend type Query @cacheControl(maxAge: \(age))", "type Aged { a: Int @cacheControl(maxAge: \(age)) }",
            #"type Aged { a: Int } extend type Aged @cacheControl(forField: "a", maxAge: \#(age))"#,
        ] {
            let fault = schemaFault(Self.base, text)
            #expect(fault?.contains("maxAge of @cacheControl is no Int") == true, "\(text): \(fault ?? "none")")
        }
    }

    @Test("Directives of cache control that name no age say nothing of it")
    func cacheControlWithoutAge() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query @cacheControl(scope: PRIVATE) { a: Int @cacheControl(maxAge: null) b: Int @cacheControl }
                """)
        #expect(schema.types[schema.queryType].maxAge == nil)
        #expect(schema.types[schema.queryType].fields.map(\.maxAge) == [nil, nil])
    }

    @Test("The field that a maximum age is for is named by a string")
    func cacheControlField() {
        let fault = schemaFault(Self.base, "extend type Query @cacheControl(maxAge: 5, forField: 7)")
        #expect(fault?.contains("forField of @cacheControl of Query is no string") == true, "\(fault ?? "none")")
    }

    @Test("A field policy that speaks of parts alone leaves what another says of the arguments")
    func partsAlone() throws {
        let schema = try SchemaIndex(parsing: [
            Self.base,
            """
            extend type Query @fieldPolicy(forField: "recipe", keyArgs: "id")
              @fieldPolicy(forField: "recipe", parts: merge)
            """,
        ])
        let field = try #require(schema.field(named: "recipe", of: schema.queryType))
        #expect(field.parts == .merge)
        #expect(field.policy == FieldPolicy(keyArgs: ["id"]))
    }

    @Test("Policies for parts are said of types and fields, and interfaces hand them on")
    func parts() throws {
        var schema = try SchemaIndex(parsing: [
            Self.base,
            """
            extend interface Named @typePolicy(parts: "replace")
            extend type Author @typePolicy(keyFields: "slug", parts: merge)
            extend type Query @fieldPolicy(forField: "recipe", keyArgs: "id", parts: "merge")
            """,
        ])
        func parts(_ type: String) -> PartPolicy? { schema.type(named: type).flatMap { schema.types[$0].parts } }
        #expect(
            [parts("Named"), parts("Recipe"), parts("Author"), parts("Node")] == [.replace, .replace, .merge, nil])
        let field = try #require(schema.field(named: "recipe", of: schema.queryType))
        #expect(field.parts == .merge)
        #expect(field.policy == FieldPolicy(keyArgs: ["id"]))
        try schema.setPartPolicy(.replace, forField: "recipe", of: "Query")
        try schema.setPartPolicy(.merge, for: "Recipe")
        #expect(schema.field(named: "recipe", of: schema.queryType)?.parts == .replace)
        #expect(schema.field(named: "recipe", of: schema.queryType)?.policy == FieldPolicy(keyArgs: ["id"]))
        #expect(parts("Recipe") == .merge)
        #expect(try SchemaIndex(serialized: schema.serialized()) == schema)
        let both = "extend interface Named @typePolicy(parts: merge) extend interface Node @typePolicy(parts: replace)"
        #expect(
            schemaFault(Self.base, both)
                == "policy -: Recipe needs a policy for parts of its own: its interfaces' differ")
    }

    @Test("A part that has pages is merged, and so is one that has such a part, unless a policy says otherwise")
    func partsWithPages() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { outer: Outer other: Other node: Node }
                type Outer { inner: Inner x: Int } type Inner @fieldPolicy(forField: "l", paginationArgs: "n") { l(n: Int): [Int] }
                type Other @typePolicy(parts: replace) { inner: Inner } type Node { id: ID! inner: Inner }
                type Lists { inners: [Inner] }
                """)
        func parts(_ type: String) -> PartPolicy? { schema.type(named: type).flatMap { schema.types[$0].parts } }
        #expect([parts("Inner"), parts("Outer")] == [.merge, .merge])
        #expect([parts("Other"), parts("Node"), parts("Lists")] == [.replace, nil, nil])
    }

    @Test("A part is merged because of pages that lie several parts deep in it")
    func deepPages() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { top: Top } type Top { outer: Outer } type Outer { inner: Inner x: Int }
                type Inner @fieldPolicy(forField: "l", paginationArgs: "n") { l(n: Int): [Int] }
                """)
        let parts = schema.type(named: "Top").flatMap { schema.types[$0].parts }
        #expect(parts == .merge)
    }

    @Test("A part that has pages is replaced where the policy of its type says so")
    func replacedPartWithPages() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { outer: Outer } type Outer { inner: Inner } type Inner { l(n: Int): [Int] }
                extend type Inner @typePolicy(parts: replace) @fieldPolicy(forField: "l", paginationArgs: "n")
                """)
        func parts(_ type: String) -> PartPolicy? { schema.type(named: type).flatMap { schema.types[$0].parts } }
        #expect([parts("Inner"), parts("Outer")] == [.replace, nil])
    }

    @Test(
        "A policy that cannot work is refused with its name",
        arguments: [
            (
                "extend type Recipe @typePolicy",
                "1:20: @typePolicy of Recipe has neither keyFields nor parts nor versioned"
            ),
            (
                "extend type Recipe @typePolicy(keyFields: 1)",
                "1:20: keyFields of @typePolicy is neither a string nor a list of strings"
            ),
            (
                "extend type Recipe @typePolicy(keyFields: [\"id\", 1])",
                "1:20: keyFields of @typePolicy is neither a string nor a list of strings"
            ),
            ("extend type Recipe @typePolicy(keyFields: \"isbn\")", "1:20: Key field isbn is no field of Recipe"),
            ("extend type Recipe @typePolicy(keyFields: \"id id\")", "1:20: Key field id of Recipe is named twice"),
            (
                "extend type Recipe @typePolicy(keyFields: \"by\")",
                "1:20: Key field Recipe.by is no scalar or enum, or is a list"
            ),
            (
                "extend type Recipe @typePolicy(keyFields: \"tags\")",
                "1:20: Key field Recipe.tags is no scalar or enum, or is a list"
            ),
            ("extend union Any @typePolicy(keyFields: \"id\")", "1:18: Any is union and cannot have key fields"),
            ("extend type Query @fieldPolicy(keyArgs: \"id\")", "1:19: @fieldPolicy of Query has no forField"),
            (
                "extend type Query @fieldPolicy(forField: \"x\", keyArgs: \"id\")",
                "1:19: Field policy for x, which is no field of Query"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"n\", keyArgs: \"id\")",
                "1:19: Query.n has a field policy with keyArgs and returns no objects"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipe\", keyArgs: \"isbn\")",
                "1:19: Key argument isbn is no argument of Query.recipe"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipe\", keyArgs: \"input.isbn\")",
                "1:19: Key argument input.isbn is no argument of Query.recipe"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipe\", keyArgs: \"input..id\")",
                "1:19: Key argument input..id is no argument of Query.recipe"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipe\", keyArgs: \"input\")",
                "1:19: Key argument input of Query.recipe is no scalar, enum or list of those"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipe\", keyArgs: \"list.id\")",
                "1:19: Key argument list.id of Query.recipe leads through a list"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipes\", keyArgs: \"ids\", paginationArgs: \"last\")",
                "1:19: Pagination argument last is no argument of Query.recipes"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipes\", paginationArgs: \"first\", maxLimit: 0)",
                "1:19: The maxLimit of Query.recipes needs paginationArgs, and must be more than 0"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipes\", keyArgs: \"ids\", maxLimit: 5)",
                "1:19: The maxLimit of Query.recipes needs paginationArgs, and must be more than 0"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"recipes\", paginationArgs: \"first\", maxLimit: \"5\")",
                "1:19: maxLimit of @fieldPolicy is no Int"
            ),
            (
                "extend type Recipe @typePolicy(parts: \"keep\")",
                "1:20: parts of @typePolicy is neither \"merge\" nor \"replace\""
            ),
            ("extend union Any @typePolicy(parts: merge)", "1:18: Any is union and cannot have a policy for parts"),
            (
                "extend type Query @fieldPolicy(forField: \"recipes\", parts: merge)",
                "1:19: Query.recipes has a policy for parts and returns no single object; parts in a list always replace "
                    + "the earlier ones"
            ),
            (
                "extend type Query @fieldPolicy(forField: \"n\", parts: merge)",
                "1:19: Query.n has a policy for parts and returns no single object; parts in a list always replace the "
                    + "earlier ones"
            ),
        ])
    func faults(policies: String, fault: String) {
        #expect(schemaFault(Self.base, policies) == "policy " + fault)
    }

    @Test("A program's policies take the place of the schema's")
    func fromCode() throws {
        var schema = try SchemaIndex(parsing: [Self.base, "extend type Recipe @typePolicy(keyFields: \"name\")"])
        let recipe = try #require(schema.type(named: "Recipe"))
        let author = try #require(schema.type(named: "Author"))
        try schema.setKeyFields(["slug", "name"], for: "Recipe")
        try schema.setKeyFields(["slug"], for: "Named")
        try schema.setFieldPolicy(FieldPolicy(keyArgs: ["id"]), forField: "recipe", of: "Query")
        #expect(schema.types[recipe].keyFields == ["slug", "name"])
        #expect(schema.types[author].keyFields == ["slug"])
        #expect(schema.types[schema.queryType].fieldPolicies == ["recipe": FieldPolicy(keyArgs: ["id"])])
        try schema.setKeyFields([], for: "Recipe")
        #expect(schema.types[recipe].keyFields == nil)
    }

    @Test("A refused policy leaves the schema as it was")
    func refusedFromCode() throws {
        let schema = try SchemaIndex(parsing: Self.base)
        var changed = schema
        #expect(throws: SchemaError(.unknownType, "Unknown type Book")) {
            try changed.setKeyFields(["id"], for: "Book")
        }
        #expect(throws: SchemaError(.policy, "Key field isbn is no field of Recipe")) {
            try changed.setKeyFields(["isbn"], for: "Recipe")
        }
        #expect(throws: SchemaError(.policy, "Key argument isbn is no argument of Query.recipe")) {
            try changed.setFieldPolicy(FieldPolicy(keyArgs: ["isbn"]), forField: "recipe", of: "Query")
        }
        #expect(changed == schema)
    }

    @Test("A maximum age is refused of what has no fields, and of a field that its type does not have")
    func refusedAges() throws {
        let schema = try SchemaIndex(parsing: Self.base)
        var changed = schema
        #expect(throws: SchemaError(.unknownType, "Unknown type Book")) { try changed.setMaxAge(5, of: "Book") }
        #expect(throws: SchemaError(.policy, "Any is union and cannot have a maximum age")) {
            try changed.setMaxAge(5, of: "Any")
        }
        #expect(throws: SchemaError(.policy, "Maximum age of isbn, which is no field of Recipe")) {
            try changed.setMaxAge(5, forField: "isbn", of: "Recipe")
        }
        #expect(changed == schema)
        #expect(
            schemaFault(Self.base, #"extend type Recipe @cacheControl(forField: "isbn", maxAge: 5)"#)
                == "policy 1:20: Maximum age of isbn, which is no field of Recipe")
    }

    @Test("Policies, defaults and ages survive the serialized form")
    func serialized() throws {
        var schema = try SchemaIndex(parsing: [
            Self.base,
            """
            extend type Query @fieldPolicy(forField: "recipes", keyArgs: "ids", paginationArgs: ["first"], maxLimit: 7)
            extend interface Named @typePolicy(keyFields: "slug")
            extend type Author @typePolicy(keyFields: []) @cacheControl(maxAge: 7)
            extend input In { d: In = {id: "é", deep: {id: null}} e: [Float] = [1, -2.5e3] f: Boolean = true g: E = A }
            enum E { A B } directive @x(a: Int = 1) repeatable on FIELD | QUERY
            """,
        ])
        try schema.setKeyFields(["name"], for: "Recipe")
        let back = try SchemaIndex(serialized: schema.serialized())
        #expect(back == schema)
        #expect(back.serialized() == schema.serialized())
        #expect(back.directive(named: "x")?.isRepeatable == true)
    }
}
