import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Parsing responses", .timeLimit(.minutes(10)))
struct ResponseParsingTests {
    private func operation(_ text: String, _ variables: [String: Value] = [:]) throws -> BoundOperation {
        try CompiledOperation(operation: nil, in: Document(parsing: text), SchemaIndex(parsing: movieSchema))
            .bound(variables)
    }

    private static let query = """
        { movie(id: 1) { id title year score done director { name } required { name } cast { name } points { x }
          matrix { x } raw } top { title } node(id: 1) { id } search { ... on Movie { title } ... on Point { x } }
          strict { title } }
        """

    /// A response that fits, with one piece of it replaced.
    private static func response(_ piece: String = "", _ other: String = "") -> String {
        let text = """
            {"data":{"movie":{"__typename":"Movie","id":"1","title":"A","year":1,"score":1.5,"done":true,
            "director":{"__typename":"User","id":"2","name":"B"},"required":{"__typename":"User","id":"3","name":null},
            "cast":[{"__typename":"User","id":"4","name":"C"}],"points":[{"__typename":"Point","x":1},null],
            "matrix":[[{"__typename":"Point","x":2}],null],"raw":{"a":[1]}},"top":[null,{"__typename":"Movie","id":"5",
            "title":"D"}],"node":{"__typename":"User","id":"6"},"search":[{"__typename":"Movie","id":"7","title":"E"},
            {"__typename":"Point","x":3}],"strict":[]}}
            """
        return piece.isEmpty ? text : text.replacing(piece, with: other)
    }

    @Test("A response that fits is taken, and comes out as it went in")
    func fits() throws {
        let operation = try operation(Self.query)
        #expect(parseFault(Self.response(), along: operation) == nil)
        let parsed = try ParsedResponse.parse(Array(Self.response().utf8), along: operation.layout)
        #expect(try parsed.assembled()["movie"]?["matrix"]?[0]?[0]?["x"]?.int == 2)
    }

    @Test(
        "A response that does not fit the operation is refused with the path",
        arguments: [
            (#""title":"A""#, #""title":1"#, "responseMismatch movie.title"),
            (#""title":"A""#, #""title":["A"]"#, "responseMismatch movie.title"),
            (#""title":"A","#, "", "responseMismatch movie"),
            (#""title":"A""#, #""title":"A","title":"B""#, "responseMismatch movie.title"),
            (#""title":"A""#, #""title":"A","\u0074itle":"B""#, "responseMismatch movie.title"),
            (#""year":1"#, #""year":1.5"#, "responseMismatch movie.year"),
            (#""year":1"#, #""year":1e0"#, "responseMismatch movie.year"),
            (#""year":1"#, #""year":"1""#, "responseMismatch movie.year"),
            (#""score":1.5"#, #""score":"1.5""#, "responseMismatch movie.score"),
            (#""done":true"#, #""done":"true""#, "responseMismatch movie.done"),
            (#""done":true"#, #""done":1"#, "responseMismatch movie.done"),
            (#""id":"1""#, #""id":null"#, "responseMismatch movie.id"),
            (#""id":"1""#, #""id":true"#, "responseMismatch movie.id"),
            (#""id":"1""#, #""id":1.5"#, "responseMismatch movie.id"),
            (#"{"__typename":"User","id":"3","name":null}"#, "null", "responseMismatch movie.required"),
            (#"{"__typename":"User","id":"3","name":null}"#, "[]", "responseMismatch movie.required"),
            (#"{"__typename":"User","id":"3","name":null}"#, "7", "responseMismatch movie.required"),
            (#"[{"__typename":"User","id":"4","name":"C"}]"#, "[null]", "responseMismatch movie.cast[0]"),
            (#"[{"__typename":"User","id":"4","name":"C"}]"#, "{}", "responseMismatch movie.cast"),
            (#"{"__typename":"Point","x":2}"#, "1", "responseMismatch movie.matrix[0][0]"),
            (#""matrix":[["#, #""matrix":[1,["#, "responseMismatch movie.matrix[0]"),
            (#""strict":[]"#, #""strict":null"#, "responseMismatch strict"),
            (#","strict":[]"#, "", "responseMismatch "),
            (#"{"data":{"#, #"{"data":[{"#, "responseMismatch "),
            (#""__typename":"Movie","id":"1""#, #""__typename":"User","id":"1""#, "schemaMismatch movie.__typename"),
            (#""__typename":"Movie","id":"1""#, #""__typename":5,"id":"1""#, "responseMismatch movie.__typename"),
            (#"{"__typename":"User","id":"6"}"#, #"{"id":"6"}"#, "schemaMismatch node"),
            (#"{"__typename":"User","id":"6"}"#, #"{"__typename":null,"id":"6"}"#, "responseMismatch node"),
            (#"{"__typename":"User","id":"6"}"#, #"{"__typename":"","id":"6"}"#, "responseMismatch node"),
            (#"{"__typename":"User","id":"6"}"#, #"{}"#, "schemaMismatch node"),
            (
                #"{"__typename":"User","id":"6"}"#, #"{"__typename":"User","__typename":"User","id":"6"}"#,
                "responseMismatch node.__typename"
            ),
            (#""x":3"#, #""x":"3""#, "responseMismatch search[1].x"),
            (#""a":[1]"#, #""a":[1,]"#, "responseMalformed movie.raw"),
        ])
    func mismatches(piece: String, other: String, expected: String) throws {
        let changed = Self.response(piece, other)
        #expect(changed != Self.response())
        #expect(parseFault(changed, along: try operation(Self.query)) == expected)
    }

    @Test(
        "A text that is no GraphQL response is refused",
        arguments: [
            "", "null", "[]", "1", "\"x\"", "{}", #"{"errors":[]}"#, #"{"data":1}"#, #"{"data":{}"#, #"{"data":{}} x"#,
            #"{"data":null,"data":null}"#, #"{"data":{"count":1},}"#, #"{"extensions":{}}"#,
            #"{"errors":[{"message":"a","message":"b"}]}"#,
        ])
    func notResponses(text: String) throws {
        let operation = try operation("{ count }")
        #expect(parseFault(text, along: operation) != nil)
    }

    @Test("Errors alone, null data and extensions are read")
    func envelope() throws {
        let operation = try operation("{ count }")
        let errors = try ParsedResponse.parse(
            Array(#"{"errors":[{"message":"no","path":["a",1]}],"extensions":{"n":1},"other":[{}]}"#.utf8),
            along: operation.layout)
        #expect(!errors.hasData && errors.errors.map(\.message) == ["no"])
        #expect(errors.extensions == ["n": .int(1)])
        #expect(errors.errors.first?.path == ResponsePath([.field("a"), .index(1)]))
        #expect(parseFault(#"{"data":null}"#, along: operation) == nil)
    }

    @Test(
        "An error's kind is the one at its root, or else errorType in its extensions, or else their code",
        arguments: [
            (#""errorType":"A","extensions":{"errorType":"B","code":"C"}"#, "A"),
            (#""extensions":{"errorType":"B","code":"C"}"#, "B"), (#""extensions":{"code":"C"}"#, "C"),
            (#""extensions":{"errorType":7}"#, nil),
        ] as [(String, String?)])
    func errorKind(members: String, kind: String?) throws {
        let parsed = try ParsedResponse.parse(
            Array("{\"errors\":[{\"message\":\"no\",\(members)}]}".utf8), along: operation("{ count }").layout)
        #expect(parsed.errors.map(\.errorType) == [kind])
    }

    @Test("An error keeps the places in the document that it is about")
    func errorLocations() throws {
        let text = #"{"errors":[{"message":"no","locations":[{"line":2,"column":7},{"line":3,"column":1}]}]}"#
        let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation("{ count }").layout)
        #expect(parsed.errors.map(\.locations) == [[.init(line: 2, column: 7), .init(line: 3, column: 1)]])
    }

    @Test(
        "An error's path that is no list is a path all the same, and one that is null is none",
        arguments: [
            (#""count""#, [.field("count")]), ("7", [.field("7")]), ("[]", []), ("null", nil),
            (#"["count",true]"#, [.field("count"), .field("true")]),
        ] as [(String, [ResponsePath.Component]?)])
    func errorPath(json: String, path: [ResponsePath.Component]?) throws {
        let response = #"{"errors":[{"message":"no","path":\#(json)}]}"#
        let parsed = try ParsedResponse.parse(Array(response.utf8), along: operation("{ count }").layout)
        #expect(parsed.errors.map(\.path) == [path.map(ResponsePath.init)])
    }

    @Test("An error's description has the place in the response, the code, and the cause")
    func errorDescription() throws {
        let operation = try operation("{ movies { title } }")
        func description(_ movies: String) -> String? {
            do throws(RecordError) {
                _ = try ParsedResponse.parse(Array("{\"data\":{\"movies\":\(movies)}}".utf8), along: operation.layout)
                return nil
            } catch { return "\(error)" }
        }
        #expect(
            description(#"[{"__typename":"Movie","id":"1","title":1}]"#)
                == """
                The response does not fit the operation: a string was expected, at movies[0].title \
                [records.responseMismatch]
                """)
        #expect(
            description(#"[{"__typename":"Movie","id":"1","title":"\q"}]"#)
                == """
                The response cannot be read, at movies[0].title [records.responseMalformed]: \
                a string holds an escape that JSON does not know, at byte 59
                """)
    }

    @Test("A response cut off at any byte is refused")
    func truncated() throws {
        let operation = try operation(Self.query)
        let bytes = Array(Self.response().utf8)
        for count in bytes.indices {
            #expect(parseFault(Array(bytes[..<count]), along: operation) != nil)
        }
    }

    @Test("A byte changed anywhere is read or refused")
    func changedBytes() throws {
        let operation = try operation(Self.query)
        let bytes = Array(Self.response().utf8)
        var refused = 0
        for position in bytes.indices {
            for byte: UInt8 in [0, 0x22, 0x2C, 0x30, 0x5C, 0x7B, 0x7D, 0x5D, 0xC3, 0xFF] {
                var changed = bytes
                changed[position] = byte
                if parseFault(changed, along: operation) != nil { refused += 1 }
            }
        }
        #expect(refused > bytes.count)
    }

    @Test(
        "Nesting 10,000 deep is refused wherever it stands",
        arguments: [
            #"{"data":{"count":@}}"#, #"{"data":{"count":1,"other":@}}"#, #"{"data":{"raw":@,"count":1}}"#,
            #"{"extensions":{"a":@}}"#,
            #"{"errors":[@]}"#, #"{"other":@,"data":{"count":1}}"#,
        ])
    func deepNesting(text: String) throws {
        let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        let fault = parseFault(text.replacing("@", with: deep), along: try operation("{ count raw }"))
        #expect(fault?.hasPrefix("tooLarge") == true || fault == "responseMismatch count")
    }

    @Test("Keys may be escaped, and fields that were not asked for are passed over")
    func escapedAndUnknownKeys() throws {
        let operation = try operation("{ movie(id: 1) { title } count }")
        let text =
            #"{"data":{"extra":{"a":[1,{"b":"}"}]},"co\u0075nt":4,"#
            + #""movie":{"id":"1","x":[],"titl\u0065":"T","__typename":"Movie"}}}"#
        let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
        #expect(try parsed.assembled().data?.json == Array(#"{"movie":{"title":"T"},"count":4}"#.utf8))
    }

    @Test("__typename may come last, at every level, and its key may be escaped where only one type is possible")
    func lateTypename() throws {
        let operation = try operation(
            "{ search { ... on Movie { title } ... on User { best { name } } } movie(id: 1) { id } }")
        let text = #"""
            {"data":{"search":[{"title":"a\n\u00e9","id":"1","__typename":"Movie"},{"best":{"name":"{\"","id":"3",
            "__typename":"User"},"id":"2","__typename":"User"}],"movie":{"id":"4","__type\u006eame":"Movie"}}}
            """#
        let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
        #expect(try parsed.assembled()["search"]?[0]?["title"]?.string == "a\né")
        #expect(try parsed.assembled()["search"]?[1]?["best"]?["name"]?.string == "{\"")
    }

    @Test("A type that the schema does not know is kept where no fragment depends on it")
    func unknownTypes() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ node(id: 9) { __typename id } search { __typename ... on Movie { title } } }"
            let data =
                #"{"node":{"__typename":"Robot","id":"9"},"search":[{"__typename":"Ghost"},{"__typename":"Ghost"}]}"#
            try await sample.write(query, data: data)
            #expect(try sample.json(query) == data)
            #expect(try CacheDump(sample.cache).records.values.contains { $0.key == "Robot:9" })
            let undecidable = try sample.operation("{ search { ... on Node { id } } }")
            #expect(
                parseFault(#"{"data":{"search":[{"__typename":"Ghost","id":"1"}]}}"#, along: undecidable)
                    == "schemaMismatch search[0]")
        }
    }

    @Test("A fragment on an interface that the field's own implements is of types, too, that the schema does not know")
    func unknownTypesOfInterface() async throws {
        let schema = """
            type Query { named: Named }
            interface Node { id: ID! } interface Named implements Node { id: ID! name: String }
            type User implements Node & Named { id: ID! name: String }
            """
        try await withSampleCache(schema) { sample in
            let query = "{ named { ... on Node { id } ... on User { name } } }"
            try await sample.write(query, data: #"{"named":{"__typename":"Ghost","id":"9"}}"#)
            #expect(try sample.json(query) == #"{"named":{"id":"9"}}"#)
        }
    }

    @Test(
        "A __typename that is no name of a type is refused, and cannot stand for another type's key",
        arguments: [
            "T:1", "", "1T", "T-", "Té", "T ",
        ])
    func typeNames(_ name: String) throws {
        let operation = try operation("{ node(id: 1) { id } }")
        let body = Value.object(["data": ["node": ["__typename": .string(name), "id": "2"]]]).json
        #expect(parseFault(body, along: operation) == "responseMismatch node")
        #expect(parseFault(#"{"data":{"node":{"id":"2","__typename":"_T1"}}}"#, along: operation) == nil)
    }

    @Test("A key without its first quotation mark is no JSON, also where it would be __typename")
    func unquotedTypename() throws {
        let operation = try operation("{ node(id: 1) { id } }")
        #expect(parseFault(#"{"data":{"node":{"__typename":5}}}"#, along: operation) == "responseMismatch node")
        #expect(parseFault(#"{"data":{"node":{x__typename":5}}}"#, along: operation) == "responseMalformed node")
    }

    @Test("A byte order mark before an answer is passed over, and one elsewhere is refused")
    func byteOrderMark() throws {
        let operation = try operation("{ count }")
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let answer = Array(#"{"data":{"count":1}}"#.utf8)
        #expect(parseFault(mark + answer, along: operation) == nil)
        #expect(try Response(json: mark + answer).json == answer)
        #expect(try Value(json: mark + answer) == ["data": ["count": 1]])
        #expect(try JSONMembers(mark + answer)["data"] == Array(#"{"count":1}"#.utf8))
        #expect(parseFault(mark + mark + answer, along: operation) == "responseMalformed ")
        #expect(parseFault(answer + mark, along: operation) == "responseMalformed ")
        #expect(parseFault(Array(mark.prefix(2)), along: operation) == "responseMalformed ")
    }

    @Test("An error that is no object, or has no message, is an error that says so")
    func errorsWithoutMessages() throws {
        let body = Array(#"{"data":null,"errors":["no",{"message":5},{}]}"#.utf8)
        let errors = try ParsedResponse.parse(body, along: operation("{ count }").layout).errors
        #expect(errors.count == 3)
        for error in errors {
            #expect(error.message.lowercased() == "the server reported an error without a message")
            #expect(error.path == nil && error.errorType == nil)
        }
    }

    @Test("What a resolver says of an error is nil where it is null")
    func nothingSaid() throws {
        let body = Array(#"{"data":null,"errors":[{"message":"no","errorInfo":null,"data":null}]}"#.utf8)
        let error = try #require(try ParsedResponse.parse(body, along: operation("{ count }").layout).errors.first)
        #expect(error.errorInfo.map(\.json) == nil && error.data.map(\.json) == nil)
    }

    // Each took minutes, and takes a second or two.
    @Test("An answer in which every object is of another unknown type is parsed once through", .timeLimit(.minutes(2)))
    func manyUnknownTypes() throws {
        let operation = try operation("{ animals { name } }")
        let animals = (0..<60_000).map { #"{"__typename":"T\#($0)","name":"n"}"# }.joined(separator: ",")
        #expect(parseFault(#"{"data":{"animals":[\#(animals)]}}"#, along: operation) == nil)
    }

    @Test("An answer with __typename last at 100 levels is looked through once", .timeLimit(.minutes(2)))
    func typenameLast() throws {
        let depth = 100
        let schema = try SchemaIndex(
            parsing: "type Query { n: N } interface N { n: N t: [String] } type A implements N { n: N t: [String] }")
        let document =
            "{ n " + String(repeating: "{ t n ", count: depth) + "{ t } "
            + String(repeating: "}", count: depth + 1)
        let deep = try CompiledOperation(operation: nil, in: Document(parsing: document), schema).bound()
        let text = #"["# + Array(repeating: #""0123456789""#, count: 200_000).joined(separator: ",") + "]"
        let inner = #"{"t":\#(text),"__typename":"A"}"#
        let data =
            String(repeating: #"{"n":"#, count: depth) + inner
            + String(repeating: #","t":[],"__typename":"A"}"#, count: depth)
        #expect(parseFault(#"{"data":{"n":\#(data)}}"#, along: deep) == nil)
        // What was noted ahead is what each object says.
        let mixed = data.replacing(#""t":\#(text),"__typename":"A""#, with: #""t":[],"__typename":1"#)
        #expect(parseFault(#"{"data":{"n":\#(mixed)}}"#, along: deep)?.hasPrefix("responseMismatch n.n") == true)
    }

    @Test("Recorded responses may lack what the cache adds; objects are then parts")
    func withoutAddedFields() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ movie(id: 1) { title } }", data: #"{"movie":{"title":"A"}}"#)
            #expect(try sample.json("{ movie(id: 1) { title } }") == #"{"movie":{"title":"A"}}"#)
            #expect(try CacheDump(sample.cache).records.values.compactMap(\.key) == ["QUERY_ROOT"])
        }
    }

    @Test("Fields decided by @include and @skip are wanted exactly when they are asked for", arguments: [true, false])
    func conditions(wanted: Bool) async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = """
                query($w: Boolean!) { movie(id: 1) {
                  id @skip(if: $w) title @include(if: $w) ... @include(if: $w) { year }
                  director @skip(if: $w) { name } done @include(if: false) } }
                """
            let yes = #"{"movie":{"title":"A","year":1,"__typename":"Movie","id":"1"}}"#
            let no = #"{"movie":{"id":"1","director":null,"__typename":"Movie"}}"#
            try await sample.write(query, ["w": .boolean(wanted)], data: wanted ? yes : no)
            #expect(
                try sample.json(query, ["w": .boolean(wanted)])
                    == (wanted ? #"{"movie":{"title":"A","year":1}}"# : #"{"movie":{"id":"1","director":null}}"#))
            #expect(try CacheDump(sample.cache).records.values.contains { $0.key == "Movie:1" })
            let operation = try sample.operation(query, ["w": .boolean(wanted)])
            #expect(parseFault("{\"data\":\(wanted ? no : yes)}", along: operation) == "responseMismatch movie")
        }
    }

    @Test("A selection that its conditions leave empty is an empty object")
    func emptySelection() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { title @skip(if: true) } box { x @include(if: false) } }"
            try await sample.write(query, data: #"{"movie":{"__typename":"Movie","id":"1"},"box":{}}"#)
            #expect(try sample.json(query) == #"{"movie":{},"box":{}}"#)
        }
    }

    @Test(
        "Values of custom scalars come back as the server wrote them",
        arguments: [
            #"{"b":[1, 2.50,"x\u00e9"],"a":{}}"#, "[]", #""text""#, "12", "1.5", "true", "null", "1e400",
            "12345678901234567890",
        ])
    func customScalars(text: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ raw }", data: "{\"raw\":\(text)}")
            try sample.reopen()
            #expect(try sample.json("{ raw }") == "{\"raw\":\(text)}")
        }
    }

    @Test("A list of 100,000 elements is written and read whole")
    func longList() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = try sample.operation("{ top { id } }")
            let elements = (0..<100_000).map { #"{"__typename":"Movie","id":"\#($0 % 1000)"}"# }
            let text = #"{"data":{"top":["# + elements.joined(separator: ",") + "]}}"
            let parsed = try ParsedResponse.parse(Array(text.utf8), along: query.layout)
            _ = try await sample.cache.write(parsed, of: query)
            let again = try await sample.cache.write(parsed, of: query)
            #expect(again.changes.isEmpty)
            let response = try sample.cache.read(query).response
            #expect(response["top"]?.count == 100_000)
            #expect(response["top"]?[99_999]?["id"]?.string == "999")
        }
    }

    @Test("A mutation whose answers are all null, or absent, has no answers; its type's name is none")
    func answers() throws {
        let operation = try operation("mutation { __typename a: rate(id: 1, stars: 1) { stars } }")
        func hasAnswers(_ data: String) throws -> Bool {
            try ParsedResponse.parse(
                Array("{\"data\":\(data),\"errors\":[{\"message\":\"no\",\"path\":[\"a\"]}]}".utf8),
                along: operation.layout
            ).hasAnswers
        }
        #expect(try !hasAnswers(#"{"__typename":"Mutation","a":null}"#))
        #expect(try !hasAnswers("null"))
        #expect(try hasAnswers(#"{"__typename":"Mutation","a":{"stars":null}}"#))
    }

    @Test("An error at a place that is none of the list's hides nothing", arguments: [-1, 2, 1_000_000])
    func errorPlaces(place: Int) async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { points { x } } }"
            let operation = try sample.operation(query)
            let text = """
                {"data":{"movie":{"__typename":"Movie","id":"1","points":[{"x":1},null]}},
                "errors":[{"message":"no","path":["movie","points",\(place)]}]}
                """
            try await sample.write(operation, response: text)
            #expect(try sample.json(query) == #"{"movie":{"points":[{"x":1},null]}}"#)
        }
    }

    @Test("White space of every kind may stand between tokens, and no other")
    func whiteSpace() throws {
        let operation = try operation("{ count }")
        #expect(parseFault("\t{\r\n\"data\"\t:\t{ \"count\"\t:\t1\t}\n}\t", along: operation) == nil)
        for space in ["\u{B}", "\u{C}", "\u{A0}"] {
            #expect(parseFault("{\(space)\"data\":{\"count\":1}}", along: operation) != nil)
        }
    }
}
