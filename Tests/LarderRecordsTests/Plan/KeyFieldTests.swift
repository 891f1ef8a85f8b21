import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Key fields and narrowed types", .timeLimit(.minutes(10)))
struct KeyFieldTests {
    @Test("An alias in another operation of the document does not hide the key field")
    func aliasElsewhere() async throws {
        try await withSampleCache(movieSchema) { sample in
            let text = "query A { movie(id: 1) { title } } query B { movie(id: 1) { id: title } }"
            let compiled = try CompiledOperation(operation: "A", in: Document(parsing: text), sample.schema)
            #expect(compiled.sentText.contains("id"))
            let operation = try compiled.bound()
            try await sample.write(
                operation, response: #"{"data":{"movie":{"title":"A","__typename":"Movie","id":"1"}}}"#)
            #expect(try CacheDump(sample.cache).records.values.compactMap(\.key).sorted() == ["Movie:1", "QUERY_ROOT"])
        }
    }

    @Test("Types that narrow an interface's field are each read by their own definition")
    func covariantFields() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ animals { name owner { id } home { x } } }"
            try await sample.write(
                query,
                data: """
                    {"animals":[{"__typename":"Dog","name":"Rex","owner":{"__typename":"User","id":"1"},"home":{"x":1}},
                    {"__typename":"Cat","name":null,"owner":{"__typename":"Movie","id":"1"},"home":null}]}
                    """)
            #expect(
                try sample.json(query) == #"{"animals":[{"name":"Rex","owner":{"id":"1"},"home":{"x":1}},"#
                    + #"{"name":null,"owner":{"id":"1"},"home":null}]}"#)
            let keys = try CacheDump(sample.cache).records.values.compactMap(\.key).sorted()
            #expect(keys == ["Movie:1", "QUERY_ROOT", "User:1"])
        }
    }

    private func keys(_ sample: SampleCache) throws -> [String] {
        try CacheDump(sample.cache).records.values.compactMap(\.key).filter { $0 != "QUERY_ROOT" }.sorted()
    }

    @Test("Several key fields do not run into each other, and 1 and \"1\" are one")
    func severalKeyFields() async throws {
        try await withSampleCache(movieSchema) { sample in
            for (row, column) in [("\"a\\\",\\\"b\"", "1"), ("\"a\"", "1"), ("\"a\"", "1"), ("\"\"", "2")] {
                try await sample.write(
                    "{ shelf { label } }",
                    data: #"{"shelf":{"__typename":"Shelf","label":"L","row":\#(row),"column":\#(column)}}"#)
            }
            #expect(
                try keys(sample) == [
                    #"Shelf:{"row":"","column":"2"}"#, #"Shelf:{"row":"a","column":"1"}"#,
                    #"Shelf:{"row":"a\",\"b","column":"1"}"#,
                ])
        }
    }

    @Test("A Boolean of a key field identifies its object by its text")
    func booleanKey() async throws {
        let schema = """
            type Query { flag: Flag }
            type Flag @typePolicy(keyFields: "isOn") { isOn: Boolean! label: String }
            """
        try await withSampleCache(schema) { sample in
            for isOn in [true, false] {
                try await sample.write(
                    "{ flag { label } }", data: #"{"flag":{"__typename":"Flag","isOn":\#(isOn),"label":"L"}}"#)
            }
            #expect(try keys(sample) == ["Flag:false", "Flag:true"])
        }
    }

    @Test("An object that lacks one of several key fields is a part", arguments: [#""row":"a""#, #""column":1"#])
    func partOfKey(field: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ shelf { label } }", data: #"{"shelf":{"__typename":"Shelf","label":"L",\#(field)}}"#)
            #expect(try keys(sample) == [])
            #expect(try sample.json("{ shelf { label } }") == #"{"shelf":{"label":"L"}}"#)
        }
    }

    @Test("Two types share an id, and neither overwrites the other")
    func sharedIDs() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ search { ... on Movie { id title } ... on User { id name } } }"
            let data =
                #"{"search":[{"__typename":"Movie","id":1,"title":"M"},{"__typename":"User","id":"1","name":"U"}]}"#
            try await sample.write(query, data: data)
            #expect(try keys(sample) == ["Movie:1", "User:1"])
            // A number and its digits are one ID: nothing is different.
            let written = try await sample.write(query, data: data.replacing(#""id":1,"#, with: #""id":"1","#))
            #expect(written.changes.isEmpty)
            #expect(try sample.json(query) == #"{"search":[{"id":"1","title":"M"},{"id":"1","name":"U"}]}"#)
        }
    }

    @Test(
        "A field under the key field's name does not identify its object, in a fragment or outside",
        arguments: [
            "{ movie(id: 1) { id: title } top { ... on Movie { id: title } } }",
            "{ movie(id: 1) { ...F } top { ... on Movie { ...F } } } fragment F on Movie { id: title }",
        ])
    func takenName(text: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            let compiled = try CompiledOperation(operation: nil, in: Document(parsing: text), sample.schema)
            #expect(compiled.sentText.contains("larder_id: id"))
            #expect(validate(try Document(parsing: compiled.sentText), against: sample.schema).isEmpty)
            try await sample.write(
                text,
                data: #"""
                    {"movie":{"id":"T","__typename":"Movie","larder_id":"1"},
                    "top":[{"id":"T","__typename":"Movie","larder_id":"1"}]}
                    """#)
            #expect(try keys(sample) == ["Movie:1"])
            #expect(try sample.json(text) == #"{"movie":{"id":"T"},"top":[{"id":"T"}]}"#)
        }
    }

    @Test("Key fields are asked of every object below the root, and the sent document is valid")
    func sentDocument() throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        let text = """
            query Q($w: Boolean!) { movie(id: 1) { title related { ...M } } shelf { label }
              search { ... on Movie { year } }
              node(id: 1) { ... on User { name } } animals { home { x } } box { x } viewer { id @include(if: $w) } }
            fragment M on Movie { title director { ...U } } fragment U on User { name }
            """
        let compiled = try CompiledOperation(operation: nil, in: Document(parsing: text), schema)
        let sent = try Document(parsing: compiled.sentText)
        #expect(validate(sent, against: schema).isEmpty)
        // What is sent, taken for a program's own operation, selects all that the cache needs.
        let again = try CompiledOperation(operation: nil, in: sent, schema)
        var withoutIdentity: [String] = []
        for wanted in [true, false] {
            let plan = try again.bound(["w": .boolean(wanted)]).layout.plan
            for selection in plan.selections where selection.staticTypeName != "Query" {
                for type in selection.types {
                    let planned = plan.cases[type.caseIndex]
                    let names = planned.fields.map { plan.fields[$0] }.filter { $0.slot != nil }.map(\.name)
                    #expect(names.contains("__typename"), "\(type.name)")
                    let wantedKeys = schema.type(named: type.name).flatMap { schema.types[$0].keyFields } ?? []
                    #expect(wantedKeys.allSatisfy(names.contains), "\(type.name)")
                    if planned.keyFields == nil { withoutIdentity.append(type.name) }
                }
            }
        }
        #expect(Set(withoutIdentity) == ["Point", "Box", "Dog", "Cat"])
    }

    /// Types that can stand in one place and disagree on what their ids are.
    private static let mixedIDs = """
        type Query { found: [Found] named: [Named] a: A b: B t: T }
        union Found = A | B
        interface Named { id: ID name: String }
        type A implements Named { id: ID! name: String sub: SubA } type SubA { id: ID! x: Int }
        type B { id: Int! title: String sub: SubB } type SubB { id: Int x: Int }
        type C implements Named { id: ID name: String }
        type T { id: ID! name: String larder_id: String }
        """

    private func compiled(_ text: String, _ sample: SampleCache) throws -> CompiledOperation {
        let compiled = try CompiledOperation(operation: nil, in: Document(parsing: text), sample.schema)
        #expect(validate(try Document(parsing: compiled.sentText), against: sample.schema) == [])
        return compiled
    }

    @Test("Types that disagree on the type of their key field are asked for it under names of their own")
    func disagreeingTypes() async throws {
        try await withSampleCache(Self.mixedIDs) { sample in
            let text = "{ found { ... on A { name sub { x } } ... on B { title sub { x } } } }"
            let operation = try compiled(text, sample).bound()
            try await sample.write(
                operation,
                response: #"""
                    {"data":{"found":[
                    {"__typename":"A","larder_id_ID_1":"1","name":"N","sub":{"__typename":"SubA","larder_id_ID_1":"2","x":1}},
                    {"__typename":"B","larder_id_Int_1":1,"title":"T","sub":{"__typename":"SubB","larder_id_Int_0":2,"x":2}}]}}
                    """#)
            #expect(try keys(sample) == ["A:1", "B:1", "SubA:2", "SubB:2"])
            #expect(
                try sample.json(operation)
                    == #"{"found":[{"name":"N","sub":{"x":1}},{"title":"T","sub":{"x":2}}]}"#)
            // What a program writes and changes has the names that the schema has.
            let exposed = try compiled(text, sample).bound(exposesAdded: true)
            let written = #"{"found":[{"name":"N","sub":{"x":1,"id":"2"},"__typename":"A","id":"1"}]}"#
            let parsed = try ParsedResponse.parse(data: Array(written.utf8), along: exposed.layout)
            _ = try await sample.cache.write(parsed, of: exposed)
            #expect(try sample.json(exposed) == written)
        }
    }

    @Test("Where two types disagree on their key field, the added key fields of other types get aliases as well")
    func aliasesElsewhere() async throws {
        let other = #"extend type Query { k: K } type K @typePolicy(keyFields: "code") { code: String! x: Int }"#
        try await withSampleCache(Self.mixedIDs + other) { sample in
            let sent = try compiled("{ found { ... on A { name } ... on B { title } } k { x } }", sample).sentText
            #expect(sent.contains("larder_code_String_1: code"), "\(sent)")
            #expect(try compiled("{ k { x } }", sample).sentText.contains("larder_") == false)
        }
    }

    @Test("A type that narrows its interface's key field is asked for it under a name of its own, others too")
    func narrowedKeyField() async throws {
        try await withSampleCache(Self.mixedIDs) { sample in
            let operation = try compiled("{ named { id ... on A { name } } }", sample).bound()
            try await sample.write(
                operation,
                response: #"""
                    {"data":{"named":[{"__typename":"A","id":"1","larder_id_ID_1":"1","larder_id_ID_0":"1","name":"N"},
                    {"__typename":"C","id":"1","larder_id_ID_0":"1"},{"__typename":"New","id":"7","larder_id_ID_0":"7"}]}}
                    """#)
            #expect(try keys(sample) == ["A:1", "C:1", "New:7"])
            #expect(try sample.json(operation) == #"{"named":[{"id":"1","name":"N"},{"id":"1"},{"id":"7"}]}"#)
        }
    }

    @Test("Types that disagree and never stand in one place are asked for plain names")
    func plainNames() async throws {
        try await withSampleCache(Self.mixedIDs) { sample in
            let sent = try compiled("{ a { name } b { title } t { larder_id } }", sample).sentText
            #expect(
                sent.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                    == "{ a { name __typename id } b { title __typename id } t { larder_id __typename id } }")
        }
    }

    @Test("The alias of an added field is no field that the program selects")
    func takenAlias() async throws {
        try await withSampleCache(Self.mixedIDs) { sample in
            let operation = try compiled("{ t { id: name larder_id } }", sample).bound()
            try await sample.write(
                operation,
                response: #"""
                    {"data":{"t":{"__typename":"T","id":"N","larder_id":"L","larder_larder_id":"9"}}}
                    """#)
            #expect(try keys(sample) == ["T:9"])
            #expect(try sample.json(operation) == #"{"t":{"id":"N","larder_id":"L"}}"#)
        }
    }

    @Test(
        "The aliases of added fields are different from each other, and from key fields that keep their names",
        arguments: [
            ("{ one { ... on A { id: name } ... on B { y } } }", "larder_larder_id: id", "larder_id"),
            (
                "{ one { ... on A { id: name } ... on B { larder_id: y } } }", "larder_larder_id: id",
                "larder_larder_larder_id: larder_id"
            ),
            // Types of one place disagree on it where it has an alias as well.
            (
                "{ three { ... on A { code: name } ... on C { id y } ... on D { id y } } }", "code_ID_1: code",
                "code_Int_1: code"
            ),
            // `x_Y` of the type `Z`, and `x` of the type `Y_Z`.
            ("{ two { ... on E { y } ... on F { y } } }", "x_Y_Z_1_1: x", "x_Y_Z_1: x_Y"),
        ])
    func distinctAliases(text: String, first: String, second: String) async throws {
        try await withSampleCache(
            """
            scalar Y_Z scalar Z union One = A | B union Two = E | F | G union Three = A | C | D
            type Query { one: One two: Two three: Three }
            type A { id: ID! name: String } type B @typePolicy(keyFields: "larder_id") { larder_id: Int! y: Int }
            type C @typePolicy(keyFields: "code") { code: ID! id: ID! y: Int }
            type D @typePolicy(keyFields: "code") { code: Int! id: ID! y: Int }
            type E @typePolicy(keyFields: "x") { x: Y_Z! y: Int } type F @typePolicy(keyFields: "x_Y") { x_Y: Z! y: Int }
            type G @typePolicy(keyFields: "x") { x: Z! y: Int }
            """
        ) { sample in
            let sent = try compiled(text, sample).sentText
            #expect(sent.contains(first) && sent.contains(second), "\(sent)")
        }
    }

    @Test("A field with an argument that must be given is no key field")
    func requiredArgument() throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { a: A b: B } type A { id(form: Int!): ID! x: Int } type B { id(form: Int! = 1): ID! x: Int }
                """)
        let text = try CompiledOperation(operation: nil, in: Document(parsing: "{ a { x } b { x } }"), schema).sentText
        #expect(validate(try Document(parsing: text), against: schema) == [])
        #expect(schema.type(named: "A").flatMap { schema.types[$0].keyFields } == nil)
        #expect(schema.type(named: "B").flatMap { schema.types[$0].keyFields } == ["id"])
        let error = #expect(throws: SchemaError.self) {
            try SchemaIndex(
                parsing: """
                    type Query { a: A } type A @typePolicy(keyFields: "code") { code(form: Int!): ID! }
                    """)
        }
        #expect(error?.code == .policy)
    }

    @Test("Key fields from code and from an interface identify")
    func keyFieldsFromCode() async throws {
        var schema = try SchemaIndex(
            parsing: """
                type Query { things: [Thing] } interface Thing @typePolicy(keyFields: "code") { code: Int! name: String }
                type Tool implements Thing { code: Int! name: String } type Toy implements Thing { code: Int! name: String }
                """)
        try schema.setKeyFields(["name"], for: "Toy")
        try await withTemporaryFolder { folder in
            let sample = try SampleCache(schema, path: folder.appending(path: "records").path)
            try await sample.write(
                "{ things { __typename } }",
                data: #"""
                    {"things":[{"__typename":"Tool","code":1},{"__typename":"Toy","code":1,"name":"ball"},
                    {"__typename":"Toy","code":1,"name":null},{"__typename":"Gift","code":3}]}
                    """#)
            #expect(try keys(sample) == ["Gift:3", "Tool:1", "Toy:ball"])
            try sample.cache.close()
        }
    }

    @Test(
        "getMovie(id:) is answered although the movie is in the cache from a list only",
        arguments: [
            ("{ movie(id: \"1\") { title } }", [:]), ("query($i: ID = 1) { movie(id: $i) { title } }", [:]),
            ("query($i: ID) { movie(id: $i) { title } }", ["i": .int(1)]),
            ("query($i: ID) { movie(id: $i) { title } }", [:]),
            ("{ movie: nested(by: {deep: {id: 1}}) { title } }", [:]),
            (
                "query($b: By) { movie: nested(by: $b) { title } }",
                ["b": .object(["deep": .object(["id": .string("1")])])]
            ),
            ("{ movie: any(id: 1) { ... on Movie { title } } }", [:]),
        ] as [(String, [String: Value])])
    func fieldPolicies(text: String, variables: [String: Value]) async throws {
        try await withSampleCache(Self.policySchema) { sample in
            try await sample.write(
                "{ all { id title } }",
                data: #"""
                    {"all":[{"__typename":"Movie","id":"1","title":"A"},{"__typename":"Movie","id":"2","title":"B"}]}
                    """#)
            #expect(try sample.json(text, variables) == #"{"movie":{"title":"A"}}"#)
        }
    }

    @Test("A field for which the server gave null stays null, although the cache has the object of its key")
    func fetchedNull() async throws {
        try await withSampleCache(Self.policySchema) { sample in
            try await sample.write(
                "{ all { id title } }", data: #"{"all":[{"__typename":"Movie","id":"1","title":"A"}]}"#)
            try await sample.write("{ movie(id: 1) { title } }", data: #"{"movie":null}"#)
            #expect(try sample.json("{ movie(id: 1) { title } }") == #"{"movie":null}"#)
        }
    }

    @Test("A field that was never fetched is answered by the object of its key in a root of many fields, too")
    func splitRoot() async throws {
        try await withSampleCache(movieSchema) { sample in
            let notes = (0..<70).map { "n\($0): note(text: \"\($0)\")" }.joined(separator: " ")
            let values = (0..<70).map { "\"n\($0)\":\"\($0)\"" }.joined(separator: ",")
            try await sample.write(
                "{ \(notes) top { title } }",
                data: "{\(values),\"top\":[{\"__typename\":\"Movie\",\"id\":\"1\",\"title\":\"A\"}]}")
            #expect(try !CacheDump(sample.cache).splitRecords.isEmpty)
            #expect(try sample.json("{ movie(id: 1) { title } }") == #"{"movie":{"title":"A"}}"#)
        }
    }

    @Test("Several key arguments stand for the key fields in the order of both")
    func orderedArguments() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "seat", keyArgs: ["r", "n"]) { seat(r: Int!, n: Int!): Seat all: [Seat] }
            type Seat @typePolicy(keyFields: ["row", "number"]) { row: Int! number: Int! label: String }
            """
        try await withSampleCache(schema) { sample in
            try await sample.write(
                "{ all { label } }",
                data: """
                    {"all":[{"__typename":"Seat","row":1,"number":2,"label":"window"},
                    {"__typename":"Seat","row":2,"number":1,"label":"aisle"}]}
                    """)
            #expect(try sample.json("{ seat(r: 1, n: 2) { label } }") == #"{"seat":{"label":"window"}}"#)
            #expect(try sample.json("{ seat(n: 1, r: 2) { label } }") == #"{"seat":{"label":"aisle"}}"#)
        }
    }

    @Test("A list of arguments is a list of objects, wholly or not at all")
    func listPolicies() async throws {
        try await withSampleCache(Self.policySchema) { sample in
            try await sample.write(
                "{ all { id title } }",
                data: #"""
                    {"all":[{"__typename":"Movie","id":"1","title":"A"},{"__typename":"Movie","id":"2","title":"B"}]}
                    """#)
            let query = "query($ids: [ID!]) { many(ids: $ids) { title } }"
            #expect(
                try sample.json(query, ["ids": .list([.int(2), .string("1")])])
                    == #"{"many":[{"title":"B"},{"title":"A"}]}"#)
            #expect(try sample.json(query, ["ids": .list([])]) == #"{"many":[]}"#)
            #expect(try sample.json("{ many(ids: 2) { title } }") == #"{"many":[{"title":"B"}]}"#)
            #expect(try sample.missing(query, ["ids": .list([.int(2), .int(3)])]) == ["many"])
            #expect(try sample.cache.read(sample.operation(query, ["ids": .list([.int(3)])])).absentKeys == ["Movie:3"])
            #expect(try sample.missing(query) == ["many"])
            try await sample.changing { try await $0.remove(keys: ["Movie:1"], as: .deleted) }
            #expect(try sample.json(query, ["ids": .list([.int(2), .string("1")])]) == #"{"many":[{"title":"B"}]}"#)
            #expect(try sample.json("{ movie(id: 1) { title } }") == #"{"movie":null}"#)
        }
    }

    @Test("A list of arguments that names an object by null says of no element what it is")
    func nullInList() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "some", keyArgs: "ids") { some(ids: [ID]): [Movie] all: [Movie] }
            type Movie { id: ID! title: String }
            """
        try await withSampleCache(schema) { sample in
            try await sample.write(
                "{ all { id title } }", data: #"{"all":[{"__typename":"Movie","id":"1","title":"A"}]}"#)
            let query = "query($ids: [ID]) { some(ids: $ids) { title } }"
            #expect(try sample.json(query, ["ids": ["1"]]) == #"{"some":[{"title":"A"}]}"#)
            for ids in [["1", nil], [nil, "1"], [nil]] as [Value] {
                #expect(try sample.missing(query, ["ids": ids]) == ["some"])
            }
        }
    }

    @Test("Where several types have an object of the key, the field is missing until one of them alone has")
    func ambiguousPolicy() async throws {
        try await withSampleCache(Self.policySchema) { sample in
            let query = "{ movie: any(id: 1) { ... on Movie { title } } }"
            for type in ["Movie", "User"] {
                try await sample.write(
                    "query($id: ID) { any(id: $id) { __typename ... on Movie { id title } ... on User { id } } }",
                    ["id": "other"], data: #"{"any":{"__typename":"\#(type)","id":"1","title":"A"}}"#)
            }
            #expect(try sample.missing(query) == ["movie"])
            let waited = try sample.cache.read(sample.operation(query)).dependencies
            let commit = try await sample.changing { try await $0.remove(keys: ["User:1"], as: .evicted) }
            let isConcerned = commit.changes.fields.contains { change in
                waited.fieldSet(of: change.record)?.isConcerned(by: change.field) == true
            }
            #expect(isConcerned, "who reads the field hears of it")
            #expect(try sample.json(query) == #"{"movie":{"title":"A"}}"#)
        }
    }

    private static let policySchema = """
        type Query @fieldPolicy(forField: "movie", keyArgs: "id") @fieldPolicy(forField: "many", keyArgs: "ids")
          @fieldPolicy(forField: "nested", keyArgs: "by.deep.id") @fieldPolicy(forField: "any", keyArgs: "id") {
          movie(id: ID = 1): Movie many(ids: [ID!]): [Movie] nested(by: By): Movie any(id: ID): Any all: [Movie] }
        input By { deep: Deep } input Deep { id: ID } union Any = Movie | User
        type Movie { id: ID! title: String } type User { id: ID! name: String }
        """

    @Test("The key arguments of a field that has pages name no object")
    func pagesNameNoObject() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "shelf", keyArgs: ["id"], paginationArgs: ["limit", "nextToken"]) {
              shelf(id: ID!, limit: Int, nextToken: String): Shelf top: Shelf
            }
            type Shelf { id: ID! label: String items: [Int] nextToken: String }
            """
        try await withSampleCache(schema) { sample in
            try await sample.write("{ top { label } }", data: #"{"top":{"__typename":"Shelf","id":"1","label":"L"}}"#)
            #expect(try sample.missing("{ shelf(id: 1) { label } }") == ["shelf"])
        }
    }

    @Test("An operation that spreads out without bound is refused in bounded time")
    func tooComplex() throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        var text = "{ viewer { ...F0 } }"
        for level in 0..<24 {
            text +=
                " fragment F\(level) on User { a\(level): best { ...F\(level + 1) }"
                + " b\(level): best { ...F\(level + 1) } }"
        }
        text += " fragment F24 on User { name }"
        let document = try Document(parsing: text)
        do {
            let operation = try CompiledOperation(operation: nil, in: document, schema)
            #expect(operation.sentText.utf8.count < 10_000)
        } catch { #expect(error.code == .tooComplex || error.code == .invalid) }
    }

    @Test(
        "Selections that cannot be one field are refused when they are compiled",
        arguments: [
            "{ movie(id: 1) { a: title a: year } }", "{ movie(id: 1) { id } movie(id: 2) { id } }",
            "{ movie(id: 1) { title { x } } }",
            "{ movie(id: 1) }", "{ movie(id: 1) { nothing } }", "{ movie(id: 1) { ... on Point { x } } }",
            "{ movie(id: 1) { ...F } }",
            "{ search { __typename: __typename ... on Movie { x: title } ... on User { x: id } } movie(id: {}) { id } }",
            "query($a: Int!) { movie(id: 1) { title @include(if: $a) } }", "{ count: note } { count }",
            "{ movie(id: 1) { __typename: title } }",
        ])
    func conflicts(text: String) throws {
        let schema = try SchemaIndex(parsing: movieSchema)
        #expect(throws: PlanError.self) {
            try CompiledOperation(operation: nil, in: Document(parsing: text), schema).bound(["a": .int(1)])
        }
    }
}
