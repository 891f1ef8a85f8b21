import Foundation
import Larder
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderImport

@Suite("Keys of fields as other libraries print them")
struct FieldKeyTests {
    let schema: SchemaIndex

    init() throws { schema = try SchemaIndex(parsing: recipeSchema) }

    private func read(_ key: String, _ style: KeyStyle = .apollo) -> String {
        do {
            return try FieldKeyReader(schema: schema, style: style).field(key, of: schema.queryType).selection.text
        } catch { return error.reason.rawValue }
    }

    @Test(
        "A field key that can be read in one way is a field with its arguments",
        arguments: [
            ("latest", "latest"),
            ("recipe(id:7)", #"recipe(id: "7")"#),
            ("recipe(id:null)", #"recipe(id: "null")"#),
            ("recipe(id:a.b(c)%,\"d\")", #"recipe(id: "a.b(c)%,\"d\"")"#),
            ("recipe(id:)", #"recipe(id: "")"#),
            ("recipes(course:MAIN,first:10)", "recipes(course: MAIN, first: 10)"),
            ("recipes(course:null)", "recipes(course: null)"),
            ("recipes(text:soup, hot)", #"recipes(text: "soup, hot")"#),
            ("recipes(first:-3,text:x:y)", #"recipes(first: -3, text: "x:y")"#),
            ("recipes", "recipes"),
            ("recipes()", "recipes"),
            ("book(isbn:42)", "book(isbn: 42)"),
            ("must(a:x)", #"must(a: "x")"#),
            ("search(ratio:0.5)", "search(ratio: 0.5)"), ("search(ratio:2)", "search(ratio: 2)"),
            ("search(ratio:1e-05)", "search(ratio: 1e-05)"),
            ("search(deep:true)", "search(deep: true)"), ("search(deep:1)", "search(deep: true)"),
            ("search(deep:false)", "search(deep: false)"), ("search(deep:0)", "search(deep: false)"),
            ("search([filter:course:MAIN,text:a])", #"search(filter: {course: MAIN, text: "a"})"#),
            ("search([filter:[range:from:1,to:2]],ratio:1.5)", "search(filter: {range: {from: 1, to: 2}}, ratio: 1.5)"),
            ("search([filter:])", "search(filter: {})"),
            ("search([filter:only:[MAIN, DESSERT]])", "search(filter: {only: [MAIN, DESSERT]})"),
            ("search(courses:[MAIN, STARTER])", "search(courses: [MAIN, STARTER])"),
            ("search(numbers:[1, 2])", "search(numbers: [1, 2])"),
            ("search(numbers:[])", "search(numbers: [])"), ("search(ids:[a])", #"search(ids: ["a"])"#),
            ("search(filters:[course:MAIN,course:STARTER])", "search(filters: [{course: MAIN}, {course: STARTER}])"),
            ("search(filters:[text:])", #"search(filters: [{text: ""}])"#),
            ("search(note:blue)", #"search(note: "blue")"#), ("search(note:1e999)", #"search(note: "1e999")"#),
        ])
    func readable(_ key: String, _ expected: String) { #expect(read(key) == expected) }

    @Test(
        "A field key that can be read in several ways is not guessed",
        arguments: [
            // A text with a comma in it, or two arguments.
            "must(a:x,b:y)",
            // Null, or the text of that name.
            "must(a:x,b:null)", "recipes(text:null)",
            // Two texts, or one with a comma in it; a quoted text, or quotation marks in a text.
            "search(ids:[a, b])", "search(ids:[])", "search(filters:[])", "search(ids:[\"a\"])",
            // One object, or two.
            "search(filters:[course:MAIN,text:a])", "search(filters:[course:MAIN,[range:from:1]])",
            // Numbers, or texts, of a scalar that only the program knows.
            "search(note:7)", "search(note:true)", "search(note:[a])", "search(note:<null>)", "search(note:1.5)",
            // Where another reading has a form that is not read.
            "search([filter:text:x],filters:[a],note:b])",
            "search(note:x,ratio:Optional(1.5))", "search(note:x,ratio:nil)",
        ])
    func ambiguous(_ key: String) { #expect(read(key) == "argumentsAmbiguous") }

    @Test(
        "A field key that fits in no way is not understood, and a field that the schema lacks is not known",
        arguments: [
            ("nothing", "unknownField"), ("nothing(a:1)", "unknownField"), ("", "unknownField"),
            ("recipe", "argumentsNotUnderstood"), ("recipe(id:7", "argumentsNotUnderstood"),
            ("must(b:x)", "argumentsNotUnderstood"),
            ("recipe(key:7)", "argumentsNotUnderstood"), ("book(isbn:x)", "argumentsNotUnderstood"),
            ("recipes(course:LUNCH)", "argumentsNotUnderstood"),
            ("recipes(first:1,course:MAIN)", "argumentsNotUnderstood"),
            ("recipes(first:1,)", "argumentsNotUnderstood"), ("recipes(,first:1)", "argumentsNotUnderstood"),
            ("search(filter:x)", "argumentsNotUnderstood"), ("search(ratio:nan)", "argumentsNotUnderstood"),
            ("search(ids:a)", "argumentsNotUnderstood"), ("search(deep:yes)", "argumentsNotUnderstood"),
            ("search(ratio:0x1p3)", "argumentsNotUnderstood"), ("recipe()", "argumentsNotUnderstood"),
            ("search(numbers:[1,2])", "argumentsNotUnderstood"), ("latest()x", "argumentsNotUnderstood"),
        ])
    func unreadable(_ key: String, _ reason: String) { #expect(read(key) == reason) }

    @Test(
        "A field key with a form that is not read within an object is not understood",
        arguments: [
            "search([filter:course:LUNCH])", "search([filter:[range:from:1,to:Optional(2)]])",
            "search(filters:[course:LUNCH])",
        ])
    func unreadWithinObject(_ key: String) { #expect(read(key) == "argumentsNotUnderstood") }

    @Test("AppSync's SDK leaves null out and prints texts in lists as Swift does")
    func appSync() {
        #expect(read(#"search(ids:["a", "b, \"c\"\n"])"#, .appSync) == #"search(ids: ["a", "b, \"c\"\n"])"#)
        #expect(read(#"search(ids:["a\0"])"#, .appSync) == #"search(ids: ["a\u0000"])"#)
        #expect(read(#"search(ids:["caf\u{e9}"])"#, .appSync) == #"search(ids: ["café"])"#)
        #expect(read(#"search(ids:["a\\b"])"#, .appSync) == #"search(ids: ["a\\b"])"#)
        #expect(read(#"search(ids:["a\r\tb\'"])"#, .appSync) == #"search(ids: ["a\r\tb'"])"#)
        for cut in [#""a\u"#, #""a\"#, #""a\u{zz}""#, #""a\ux41}""#, #""a\u{41""#] {
            #expect(read("search(ids:[\(cut)])", .appSync) == "argumentsNotUnderstood", "\(cut)")
        }
        #expect(read("search(ids:[a])", .appSync) == "argumentsNotUnderstood")
        #expect(read("recipes(text:null)", .appSync) == #"recipes(text: "null")"#)
        #expect(read("recipes(course:null)", .appSync) == "argumentsNotUnderstood")
        #expect(read("search(numbers:[1, 2])", .appSync) == "search(numbers: [1, 2])")
        #expect(read(#"search(courses:["MAIN"])"#, .appSync) == "search(courses: [MAIN])")
    }

    @Test(
        "The keys in a file are read as the library prints them from which the file is",
        arguments: [(ImportFormat.appSync, 1), (ImportFormat.apollo, 0)])
    func styles(format: ImportFormat, taken: Int) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.db").path, .records)
            try fixture.record("QUERY_ROOT", #"{"search(ids:[\"a\"])":[]}"#)
            fixture.close()
            let report = try await source(fixture.path, format).inspect()
            #expect(report.rootFields == .init(taken: taken))
            #expect(report.omitted(.field, .argumentsAmbiguous) == 1 - taken)
        }
    }

    @Test("Timestamps of AppSync are numbers, and null in a list is as Foundation prints it")
    func timestamps() throws {
        let schema = try SchemaIndex(
            parsing: "scalar AWSTimestamp type Query { at(time: AWSTimestamp, marks: [Int]): Int }")
        let reader = FieldKeyReader(schema: schema, style: .apollo)
        let time = try reader.field("at(time:7)", of: schema.queryType)
        let marks = try reader.field("at(marks:[1, <null>])", of: schema.queryType)
        #expect(time.selection.text == "at(time: 7)" && marks.selection.text == "at(marks: [1, null])")
    }

    @Test("What AppSync's schemas know as a text is one where it is all digits, too")
    func phones() throws {
        let schema = try SchemaIndex(parsing: "scalar AWSPhone type Query { of(phone: AWSPhone): Int }")
        let reader = FieldKeyReader(schema: schema, style: .appSync)
        let field = try reader.field("of(phone:5551234)", of: schema.queryType)
        #expect(field.selection.text == #"of(phone: "5551234")"#)
    }

    @Test("A list in which one element can be read in two ways is not guessed")
    func ambiguousElement() throws {
        let schema = try SchemaIndex(parsing: "scalar Note type Query { all(notes: [Note!]): Int }")
        let reader = FieldKeyReader(schema: schema, style: .appSync)
        let texts = try reader.field(#"all(notes:["a", "b"])"#, of: schema.queryType)
        #expect(texts.selection.text == #"all(notes: ["a", "b"])"#)
        let error = #expect(throws: FieldKeyReader.Failure.self) {
            try reader.field(#"all(notes:["a", "7"])"#, of: schema.queryType)
        }
        #expect(error?.reason == .argumentsAmbiguous)
    }

    @Test("A field key that can be read in more ways than are tried is not guessed")
    func tooManyReadings() {
        let objects = Array(repeating: "course:MAIN,text:a", count: 60).joined(separator: ",")
        #expect(read("search(filters:[\(objects)])") == "argumentsAmbiguous")
    }

    @Test("However a key is made, reading it ends soon", .timeLimit(.minutes(10)))
    func hostile() {
        for key in [
            "must(a:" + String(repeating: ",b:x", count: 5_000) + ")",
            "search(filters:[" + String(repeating: "course:MAIN,text:a,", count: 2_000) + "])",
            "search([filter:" + String(repeating: "[range:", count: 3_000) + ")",
            "search(ids:[" + String(repeating: "a, ", count: 5_000) + "])",
            "recipe(id:" + String(repeating: "x", count: 100_000) + ")",
        ] {
            let found = read(key)
            #expect(found.hasPrefix("arguments") || found.hasPrefix("recipe("))
        }
    }

    @Test("Whatever the arguments were, they are read as they were or not at all", arguments: [UInt64(1), 2, 3, 4])
    func sound(_ seed: UInt64) throws {
        var maker = ArgumentMaker(schema: schema, random: SeededNumbers(seed: seed))
        var decided = 0
        for _ in 0..<600 {
            let fields = schema.types[schema.queryType].fields.filter { !$0.arguments.isEmpty }
            guard let field = fields.randomElement(using: &maker.random) else { continue }
            let arguments = maker.arguments(field.arguments)
            for style in [KeyStyle.apollo, .appSync] {
                let key = KeyPrinter(schema: schema, style: style).key(field.name, arguments)
                let said = style.printsNull ? arguments : arguments.compactMapValues(\.withoutNullMembers)
                let found = read(key, style)
                if ["argumentsAmbiguous", "argumentsNotUnderstood"].contains(found) { continue }
                decided += 1
                #expect(found == selection(field, said), "seed \(seed), \(style): \(key)")
            }
        }
        #expect(decided > 200, "seed \(seed)")
    }

    private func selection(_ field: FieldDefinition, _ arguments: [String: Value]) -> String {
        let literals = sorted(field.arguments).compactMap { input in
            arguments[input.name].map { "\(input.name): \(schema.literal($0, as: input.type))" }
        }
        return literals.isEmpty ? field.name : "\(field.name)(\(literals.joined(separator: ", ")))"
    }
}

extension Value {
    /// As older libraries have it: nil for null, and objects without members that are.
    fileprivate var withoutNullMembers: Value? {
        switch self {
        case .null: nil
        case .object(let members): .object(members.compactMapValues(\.withoutNullMembers))
        default: self
        }
    }
}
