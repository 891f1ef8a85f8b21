import LarderGraphQL
import Testing

@Suite("Validation")
struct ValidationTests {
    static let schemaText = """
        type Query {
          dog: Dog cat: Cat pet: Pet catOrDog: CatOrDog human(id: ID!): Human find(where: Filter, ids: [ID!]): [Pet]
          args(i: Int f: Float s: String b: Boolean id: ID e: Command l: [Int] ll: [[Int!]] c: Custom r: Int! = 1): Int
          need(a: Int!, b: String!): Int
        }
        type Mutation { a: Int b(i: Int): Int } type Subscription { message: Dog other: Int }
        input Filter { name: String! age: Int = 3 size: Int! = 1 and: [Filter!] e: Command }
        enum Command { SIT DOWN } scalar Custom union CatOrDog = Cat | Dog
        interface Pet { name: String nick(n: Int): String } interface Being { name: String }
        interface Canine implements Being { name: String mother: Canine }
        type Dog implements Pet & Being & Canine {
          name: String nick(n: Int): String barks: Boolean! size: Int knows(command: Command!): Boolean! owner: Human
          mother: Canine tags: [String]
        }
        type Cat implements Pet & Being {
          name: String nick(n: Int): String meows: Boolean! size: String owner: Alien tags: String
        }
        type Human implements Being { name: String pets: [Pet] } type Alien implements Being { name: String age: Int }
        directive @onQuery(a: Int!) on QUERY  directive @many(n: Int) repeatable on FIELD
        directive @onVariable on VARIABLE_DEFINITION
        """
    static let schema = Result { try SchemaIndex(parsing: schemaText) }

    private func faults(_ text: String) throws -> [String] {
        validate(try Document(parsing: text), against: try Self.schema.get())
            .map { "\($0.rule) \($0.location): \($0.message)" }
    }

    @Test(
        "Valid documents have no errors",
        arguments: [
            "{ dog { name } }", "{ __typename dog { __typename } catOrDog { __typename } __schema { types { name } } }",
            "{ __type(name: \"Dog\") { fields(includeDeprecated: true) { name } } }",
            "query A { dog { name } } query B { dog { name } } mutation C { a }",
            "{ pet { ... on Dog { barks } ... on Cat { meows } ... on Being { name } } }",
            "{ dog { ... on Pet { name } ... { size } ... @include(if: true) { barks } } }",
            "{ dog { ...F } } fragment F on Dog { name ...G } fragment G on Being { name }",
            "{ dog { name } } fragment Unused on Cat { name }",
            "{ args(i: 1, f: 1, s: \"\", b: true, id: 1, e: SIT, l: [1, null], ll: [[1]], c: {any: [$x]}) }"
                .replacing("$x", with: "1"),
            "{ args(f: 1.5, id: \"x\", l: 1, ll: 1, c: ENUM, i: null) }", "{ args(ll: [1, [2]]) }",
            "{ find(where: {name: \"a\", and: {name: \"b\", size: 2}}, ids: \"1\") { name } }",
            "query($a: Int!, $b: String!) { need(a: $a, b: $b) }",
            "query($a: Int = 1) { need(a: $a, b: \"\") }", "query($a: Int) { args(r: $a) }",
            "query($a: Int!) { args(i: $a, l: [$a], f: 1) }", "query($l: [[Int!]!]!) { args(ll: $l) }",
            "query($f: Filter, $n: String!) { a: find(where: $f) { name } b: find(where: {name: $n}) { name } }",
            "query($n: Int) { find(where: {name: \"\", size: $n}) { name } }",
            "query($a: Custom) { args(c: [$a, {b: $a}]) }", "query($a: Int @onVariable) { args(i: $a) }",
            "query($a: Int) @onQuery(a: 1) { args(i: $a) @many(n: 1) @many(n: 2) @skip(if: false) }",
            "query A($i: Boolean!) { ...F } query B($i: Boolean = true) { ...F } "
                + "fragment F on Query { dog @skip(if: $i) { name } }",
            "query A($i: Int) { ...F } query B { dog { name } } fragment F on Query { args(i: $i) }",
            "subscription { message { name barks } }",
            "subscription { ...F } fragment F on Subscription { message { name } message { name } }",
            "{ dog { name name a: name } dog { name } }", "{ dog { nick(n: 1) nick(n: 1) } }",
            "{ need(a: 1, b: \"\") need(b: \"\", a: 1) }",
            "{ find(where: {name: \"a\", size: 2}) { name } find(where: {size: 2, name: \"a\"}) { name } }",
            "{ pet { ... on Dog { x: nick(n: 1) } ... on Cat { x: nick(n: 2) } } }",
            "{ pet { ... on Dog { x: name } ... on Cat { x: nick } } }",
            "{ catOrDog { ... on Dog { owner { name } } ... on Cat { owner { name } } } }",
            "{ find(where: {name: \"a\", age: 1}) { name } find(where: {age: 1, name: \"a\"}) { nick } }",
        ])
    func valid(text: String) throws {
        #expect(try faults(text) == [])
    }

    @Test(
        "Definitions have distinct names, and an anonymous operation stands alone",
        arguments: [
            (
                "query A { dog { name } } query A { cat { name } }",
                ["operationNameUniqueness 1:26: Operation A is defined twice"]
            ),
            (
                "{ dog { name } } query A { dog { name } }",
                ["loneAnonymousOperation 1:1: An anonymous operation stands beside others"]
            ),
            (
                "{ dog { ...F } } fragment F on Dog { name } fragment F on Dog { size }",
                ["fragmentNameUniqueness 1:45: Fragment F is defined twice"]
            ),
            (
                "subscription { message { name } other }",
                ["singleRootField 1:33: A subscription has one root field, and this is its second"]
            ),
            (
                "subscription { ...F } fragment F on Subscription { message { name } x: other }",
                ["singleRootField 1:69: A subscription has one root field, and this is its second"]
            ),
            (
                "subscription { __typename }",
                ["singleRootField 1:16: The root field of a subscription cannot be __typename"]
            ),
        ])
    func definitions(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected)
    }

    @Test("An operation needs a root type")
    func missingRoot() throws {
        let schema = try SchemaIndex(parsing: "type Query { a: Int }")
        let errors = validate(try Document(parsing: "mutation { a { b } }"), against: schema)
        #expect(
            errors == [
                ValidationError(
                    rule: .knownOperationType, message: "The schema has no mutation type",
                    location: Location(line: 1, column: 1))
            ])
    }

    @Test(
        "Fields exist on their type, and select as their type allows",
        arguments: [
            ("{ dog { wings } }", ["fieldSelections 1:9: object type Dog has no field wings"]),
            ("{ pet { barks } }", ["fieldSelections 1:9: interface Pet has no field barks"]),
            ("{ catOrDog { name } }", ["fieldSelections 1:14: union CatOrDog has no field name"]),
            ("{ dog { ... on Pet { barks } } }", ["fieldSelections 1:22: interface Pet has no field barks"]),
            (
                "{ dog { ...F } } fragment F on Dog {\n  wings { feathers(x: 1) } }",
                ["fieldSelections 2:3: object type Dog has no field wings"]
            ),
            ("{ dog }", ["leafFieldSelections 1:3: Query.dog is Dog and needs a selection of fields"]),
            ("{ dog { name { x } } }", ["leafFieldSelections 1:9: Dog.name is String and has no fields to select"]),
            ("{ find }", ["leafFieldSelections 1:3: Query.find is [Pet] and needs a selection of fields"]),
            ("{ dog { __schema { types { name } } } }", ["fieldSelections 1:9: object type Dog has no field __schema"]),
            // A variable that is used there is used.
            ("query($a: Int) { dog { wings(x: [$a]) } }", ["fieldSelections 1:24: object type Dog has no field wings"]),
        ])
    func fields(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected)
    }

    @Test(
        "Fragments exist, fit and end",
        arguments: [
            ("{ dog { ...Nope } }", ["fragmentSpreadTargetDefined 1:9: Unknown fragment Nope"]),
            ("{ dog { ... on Nope { x } } }", ["fragmentSpreadTypeExistence 1:9: Unknown type Nope"]),
            ("{ dog { ...F } } fragment F on Nope { x }", ["fragmentSpreadTypeExistence 1:18: Unknown type Nope"]),
            (
                "{ dog { ... on Int { x } } }",
                ["fragmentsOnCompositeTypes 1:9: A fragment cannot be on Int, which is scalar"]
            ),
            (
                "{ dog { ...F } } fragment F on Filter { x }",
                ["fragmentsOnCompositeTypes 1:18: A fragment cannot be on Filter, which is input object"]
            ),
            (
                "{ dog { ... on Cat { meows } } }",
                ["fragmentSpreadIsPossible 1:9: A fragment is on Cat, which Dog can never be"]
            ),
            (
                "{ human(id: 1) { ... on Pet { name } } }",
                ["fragmentSpreadIsPossible 1:18: A fragment is on Pet, which Human can never be"]
            ),
            (
                "{ dog { ...F } } fragment F on CatOrDog { ... on Cat { meows } ... on Human { name } }",
                ["fragmentSpreadIsPossible 1:64: A fragment is on Human, which CatOrDog can never be"]
            ),
            (
                "{ cat { ...F } } fragment F on Dog { name }",
                ["fragmentSpreadIsPossible 1:9: Fragment F is on Dog, which Cat can never be"]
            ),
            (
                "{ dog { ...F } } fragment F on Dog { ...F }",
                ["fragmentSpreadsMustNotFormCycles 1:38: Fragment F is spread within itself"]
            ),
            (
                "{ dog { ...F } } fragment F on Dog { ...G } fragment G on Dog { owner { pets { ...F } } }",
                ["fragmentSpreadsMustNotFormCycles 1:80: Fragment F is spread within itself"]
            ),
        ])
    func fragments(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected)
    }

    @Test(
        "Arguments are known, given once and given where required",
        arguments: [
            ("{ dog { name(x: 1) } }", ["argumentNames 1:14: Dog.name has no argument x"]),
            ("{ human(id: 1, id: 2) { name } }", ["argumentUniqueness 1:16: Argument id is given twice"]),
            ("{ human { name } }", ["requiredArguments 1:3: Query.human requires argument id of type ID!"]),
            ("{ need(b: \"\") }", ["requiredArguments 1:3: Query.need requires argument a of type Int!"]),
            ("{ dog { name @skip } }", ["requiredArguments 1:14: @skip requires argument if of type Boolean!"]),
            ("{ dog { name @skip(if: true, unless: 1) } }", ["argumentNames 1:30: @skip has no argument unless"]),
        ])
    func arguments(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected)
    }

    @Test(
        "Literals are values of their type",
        arguments: [
            ("i: 1.0", "1.0 is no value of type Int, for argument i of Query.args"),
            ("i: \"1\"", "\"1\" is no value of type Int, for argument i of Query.args"),
            ("i: 2147483648", "2147483648 is no value of type Int, for argument i of Query.args"),
            ("i: [1]", "A list is no value of type Int, for argument i of Query.args"),
            ("f: \"x\"", "\"x\" is no value of type Float, for argument f of Query.args"),
            ("f: 1e999", "1e999 is no value of type Float, for argument f of Query.args"),
            ("s: 1", "1 is no value of type String, for argument s of Query.args"),
            ("s: SIT", "SIT is no value of type String, for argument s of Query.args"),
            ("b: 1", "1 is no value of type Boolean, for argument b of Query.args"),
            ("id: 1.5", "1.5 is no value of type ID, for argument id of Query.args"),
            ("id: true", "true is no value of type ID, for argument id of Query.args"),
            ("e: \"SIT\"", "\"SIT\" is no value of type Command, for argument e of Query.args"),
            ("e: ROLL", "ROLL is no value of type Command, for argument e of Query.args"),
            ("r: null", "null is no value of type Int!, for argument r of Query.args"),
            ("l: [1, \"2\"]", "\"2\" is no value of type Int, for argument l of Query.args"),
            ("l: \"2\"", "\"2\" is no value of type Int, for argument l of Query.args"),
            ("ll: [[1, null]]", "null is no value of type Int!, for argument ll of Query.args"),
            ("ll: [[[1]]]", "A list is no value of type Int!, for argument ll of Query.args"),
        ])
    func literals(argument: String, message: String) throws {
        #expect(try faults("{ args(\(argument)) }") == ["valuesOfCorrectType 1:8: \(message)"])
    }

    @Test(
        "Input objects have the fields of their type",
        arguments: [
            (
                "{}",
                [
                    "inputObjectRequiredFields 1:8: Filter requires field name of type String!, "
                        + "in argument where of Query.find"
                ]
            ),
            (
                "{name: \"\", x: 1}",
                ["inputObjectFieldNames 1:8: Filter has no field x, in argument where of Query.find"]
            ),
            (
                "{name: \"\", name: \"\"}",
                ["inputObjectFieldUniqueness 1:8: Field name is given twice in argument where of Query.find"]
            ),
            ("{name: null}", ["valuesOfCorrectType 1:8: null is no value of type String!, for Filter.name"]),
            (
                "{name: \"\", and: [{name: 1}]}",
                ["valuesOfCorrectType 1:8: 1 is no value of type String!, for Filter.name"]
            ),
            ("{name: \"\", e: UP}", ["valuesOfCorrectType 1:8: UP is no value of type Command, for Filter.e"]),
            ("SIT", ["valuesOfCorrectType 1:8: SIT is no value of type Filter, for argument where of Query.find"]),
        ])
    func inputObjects(literal: String, expected: [String]) throws {
        #expect(try faults("{ find(where: \(literal)) { name } }") == expected)
    }

    @Test(
        "Variables are defined once, used, of input types, with defaults that fit",
        arguments: [
            ("query($a: Int, $a: Int) { args(i: $a) }", ["variableUniqueness 1:16: Variable $a is defined twice"]),
            (
                "query($a: Dog) { args(c: $a) }",
                ["variablesAreInputTypes 1:7: Variable $a is of Dog, which is no input type"]
            ),
            (
                "query($a: [Nope!]) { args(c: $a) }",
                ["variablesAreInputTypes 1:7: Variable $a is of Nope, which is no input type"]
            ),
            ("query($a: Int) { dog { name } }", ["allVariablesUsed 1:7: Variable $a is never used"]),
            ("{ args(i: $a) }", ["allVariableUsesDefined 1:8: Variable $a is not defined by the operation"]),
            (
                "query Q { args(c: {x: [$a]}) }",
                ["allVariableUsesDefined 1:16: Variable $a is not defined by operation Q"]
            ),
            (
                "query Q { ...F } query R($a: Int) { ...F } fragment F on Query { args(i: $a) }",
                ["allVariableUsesDefined 1:71: Variable $a is not defined by operation Q"]
            ),
            (
                "query($a: Int = \"1\") { args(i: $a) }",
                ["valuesOfCorrectType 1:7: \"1\" is no value of type Int, for the default of $a"]
            ),
            (
                "query($a: Int! = null) { args(i: $a) }",
                ["valuesOfCorrectType 1:7: null is no value of type Int!, for the default of $a"]
            ),
            (
                "query($f: Filter = {age: 1}) { find(where: $f) { name } }",
                ["inputObjectRequiredFields 1:7: Filter requires field name of type String!, in the default of $f"]
            ),
        ])
    func variables(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected)
    }

    @Test(
        "Variables stand where their type may",
        arguments: [
            ("$a: String", "args(i: $a)", "String", "Int"), ("$a: Int", "need(a: $a, b: \"\")", "Int", "Int!"),
            ("$a: Int = null", "need(a: $a, b: \"\")", "Int", "Int!"), ("$a: Int", "args(l: $a)", "Int", "[Int]"),
            ("$a: [Int]", "args(i: $a)", "[Int]", "Int"), ("$a: [[Int]]", "args(ll: $a)", "[[Int]]", "[[Int!]]"),
            ("$a: Int", "args(ll: [[$a]])", "Int", "Int!"),
            (
                "$a: Boolean", "dog { name @skip(if: $a) }", "Boolean",
                "Boolean!"
            ),
            ("$a: String", "find(where: {name: $a}) { name }", "String", "String!"),
            ("$a: ID", "args(s: $a)", "ID", "String"), ("$a: Int", "args(f: $a)", "Int", "Float"),
        ])
    func variableUsage(definition: String, selection: String, type: String, expected: String) throws {
        let found = try faults("query(\(definition)) {\n\(selection) }")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("allVariableUsagesAreAllowed 2:") == true)
        #expect(found.first?.hasSuffix("Variable $a of type \(type) stands where \(expected) is expected") == true)
    }

    @Test(
        "Directives are known, in their place, and once unless repeatable",
        arguments: [
            ("{ dog @nope(a: 1) { name } }", ["directivesAreDefined 1:7: Unknown directive @nope"]),
            (
                "query($a: Int) { dog @nope(a: {x: $a}) { name } }",
                ["directivesAreDefined 1:22: Unknown directive @nope"]
            ),
            (
                "query @skip(if: true) { dog { name } }",
                ["directivesAreInValidLocations 1:7: @skip cannot stand on QUERY"]
            ),
            ("{ dog { name @onQuery(a: 1) } }", ["directivesAreInValidLocations 1:14: @onQuery cannot stand on FIELD"]),
            (
                "{ dog { ...F } } fragment F on Dog @include(if: true) { name }",
                ["directivesAreInValidLocations 1:36: @include cannot stand on FRAGMENT_DEFINITION"]
            ),
            (
                "{ dog { ...F @many } } fragment F on Dog { name }",
                ["directivesAreInValidLocations 1:14: @many cannot stand on FRAGMENT_SPREAD"]
            ),
            (
                "{ dog { ... @many { name } } }",
                ["directivesAreInValidLocations 1:13: @many cannot stand on INLINE_FRAGMENT"]
            ),
            (
                "{ dog { name @skip(if: true) @skip(if: true) } }",
                ["directivesAreUniquePerLocation 1:30: @skip stands here twice"]
            ),
        ])
    func directives(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected)
    }

    @Test(
        "Fields with one response key can be merged",
        arguments: [
            ("{ dog { x: name\nx: nick } }", ["2:1: nick has the response key of name, which is selected at 1:9"]),
            (
                "{ dog { nick(n: 1)\nnick(n: 2) } }",
                ["2:1: nick is also selected at 1:9 with other arguments and the same response key"]
            ),
            (
                "{ args(s: \"e\u{301}\")\nargs(s: \"\u{E9}\") }",
                ["2:1: args is also selected at 1:3 with other arguments and the same response key"]
            ),
            (
                "{ dog { nick\nnick(n: 2) } }",
                ["2:1: nick is also selected at 1:9 with other arguments and the same response key"]
            ),
            (
                "{ pet { nick(n: 1) ... on Dog {\nnick(n: 2) } } }",
                ["2:1: nick is also selected at 1:9 with other arguments and the same response key"]
            ),
            (
                "{ pet { ... on Dog { size } ... on Cat {\nsize } } }",
                ["2:1: size is String, and the field with its response key at 1:22 is Int"]
            ),
            (
                "{ pet { ... on Dog { tags } ... on Cat {\ntags } } }",
                ["2:1: tags is String, and the field with its response key at 1:22 is [String]"]
            ),
            (
                "{ pet { ... on Dog { x: barks } ... on Cat {\nx: size } } }",
                ["2:1: size is String, and the field with its response key at 1:22 is Boolean!"]
            ),
            (
                "{ pet { ... on Dog { x: owner { name } } ... on Cat {\nx: name } } }",
                ["2:1: name is String, and the field with its response key at 1:22 is Human"]
            ),
            (
                "{ catOrDog { ... on Dog { owner { x: name } } ... on Cat { owner {\nx: age } } } }",
                ["2:1: age is Int, and the field with its response key at 1:35 is String"]
            ),
            (
                "{ dog { ...F } dog { ...G } } fragment F on Dog { x: size } fragment G on Dog {\nx: barks }",
                ["2:1: barks is Boolean!, and the field with its response key at 1:51 is Int"]
            ),
            (
                "{ dog { name } } fragment Unused on Dog { x: name\nx: nick }",
                ["2:1: nick has the response key of name, which is selected at 1:43"]
            ),
            (
                "{ dog { owner { x: name } } ...F } fragment F on Query { dog { ... { owner {\nx: __typename } } } }",
                ["2:1: __typename is String!, and the field with its response key at 1:17 is String"]
            ),
        ])
    func merging(text: String, expected: [String]) throws {
        #expect(try faults(text) == expected.map { "fieldSelectionMerging \($0)" })
    }

    @Test("A value that a program nests deeper than any text may be is refused")
    func deepValue() throws {
        func faults(depth: Int) throws -> [String] {
            var value = Literal.object([.init(name: "name", value: .string("x"))])
            for _ in 0..<depth {
                value = .object([.init(name: "name", value: .string("x")), .init(name: "and", value: value)])
            }
            let name = Field(name: "name")
            let find = Field(
                name: "find", arguments: [Argument(name: "where", value: value)], selections: [.field(name)])
            let document = Document(operations: [OperationDefinition(kind: .query, selections: [.field(find)])])
            return validate(document, against: try Self.schema.get()).map { "\($0.rule): \($0.message)" }
        }
        #expect(try faults(depth: 10) == [])
        #expect(try faults(depth: ParserLimits.deepest + 1).contains { $0.hasSuffix("is nested too deep") })
    }

    @Test("What is wrong in a fragment is told once, however many operations have it")
    func sharedFragment() throws {
        let text = """
            query A($v: String) { ...F } query B($v: String) { ...F } query C($v: Boolean) { ...F }
            fragment F on Query { args(i: $v) }
            """
        // The variable of the third is of another type, and so it is another fault.
        #expect(try faults(text).count == 2)
    }

    @Test("Errors come in the order of the text, and not without end")
    func orderAndNumber() throws {
        let text = "{ b:nope dog { x } " + String(repeating: "nope ", count: 1_000) + "}"
        let errors = validate(try Document(parsing: text), against: try Self.schema.get())
        #expect(errors.count < 150)
        #expect(errors.map(\.location) == errors.map(\.location).sorted())
        #expect(errors.first?.location == Location(line: 1, column: 3))
    }
}
