import LarderGraphQL
import LarderTestSupport
import Testing

/// No text makes the parser, the validator or the printer trap, and whatever parses prints to what parses to it.
@Suite("Random texts")
struct FuzzTests {
    private static let tokens = [
        "{", "}", "{", "}", "(", ")", "[", "]", ":", "=", "!", "$", "@", "|", "&", "...", "query", "mutation",
        "subscription", "fragment", "on", "on", "type", "interface", "union", "enum", "input", "scalar", "extend",
        "schema", "directive", "implements", "repeatable", "true", "false", "null", "Query", "Dog", "Pet", "Int", "a",
        "b", "name", "dog", "pet", "$x", "F", "...F", "id:", "0", "-1", "1.5", "1e5", "\"s\"", "\"\"\"b\"\"\"", "\"",
        "\"\"\"", "#c\n", "\\", "\u{FEFF}", "é", ",", "\n", "FIELD", "@skip(if: $x)", "@typePolicy(keyFields:\"id\")",
    ]
    private static let schemaText = """
        type Query { dog(id: ID, in: In): Dog pet: [Pet!] } interface Pet { name(x: Int = 1): String! pet: Pet }
        type Dog implements Pet @typePolicy(keyFields: "id") { id: ID! name(x: Int = 1): String! pet: Dog }
        union U = Dog | Query input In { a: [Int!] b: In c: E = A } enum E { A B } directive @d(a: In) on FIELD
        extend type Query @fieldPolicy(forField: "dog", keyArgs: ["id"])
        """
    private static let documentText = #"""
        query Q($x: Boolean! = true, $y: [Int!], $i: In = {a: [1], c: B}) {
          dog(id: "1", in: {a: $y, b: {c: A}}) { ...F @skip(if: $x) n: name(x: 2) ... on Pet { pet { name } } }
          pet { __typename ... on Dog @include(if: $x) { id pet { ...F } } }
          s: dog(in: $i, id: """block \""" string""") @d(a: {b: {}}) { id }
        }
        fragment F on Dog { id name pet { pet { id } } }
        """#

    private func mutate(_ text: [UInt8], using random: inout SeededNumbers) -> String {
        var bytes = text
        for _ in 0..<Int.random(in: 1...6, using: &random) where !bytes.isEmpty {
            let index = Int.random(in: bytes.indices, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes[index] = .random(in: .min ... .max, using: &random)
            case 1: bytes.remove(at: index)
            case 2: bytes.removeSubrange(index..<min(index + Int.random(in: 1...20, using: &random), bytes.count))
            case 3:
                let token = Self.tokens[Int.random(in: Self.tokens.indices, using: &random)]
                bytes.insert(contentsOf: token.utf8, at: index)
            case 4:
                let other = Int.random(in: bytes.indices, using: &random)
                bytes.insert(contentsOf: Array(bytes[other..<min(other + 15, bytes.count)]), at: index)
            default: bytes.removeSubrange(index...)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func soup(using random: inout SeededNumbers) -> String {
        (0..<Int.random(in: 1...40, using: &random)).map { _ in
            Self.tokens[Int.random(in: Self.tokens.indices, using: &random)]
        }.joined(separator: Bool.random(using: &random) ? " " : "")
    }

    /// Runs all there is over the text; answers whether it parsed.
    private func exercise(_ text: String, _ schema: SchemaIndex, _ note: @autoclosure () -> String) throws -> Bool {
        let document: Document
        do throws(SyntaxError) {
            document = try Document(parsing: text)
        } catch {
            #expect(error.location.line >= 1 && error.location.column >= 1, "\(note()): \(text)")
            return false
        }
        _ = validate(document, against: schema, budget: 10_000)
        #expect(try Document(parsing: document.printed()) == document, "\(note()): \(text)")
        return true
    }

    private func exerciseSchema(_ text: String, _ note: @autoclosure () -> String) throws -> Bool {
        let schema: SchemaIndex
        do throws(SchemaError) {
            schema = try SchemaIndex(parsing: text)
        } catch {
            #expect(error.code != .serializedForm, "\(note()): \(text)")
            return false
        }
        #expect(try SchemaIndex(serialized: schema.serialized()) == schema, "\(note()): \(text)")
        return true
    }

    @Test("Mutated documents parse or are refused", arguments: [1, 2, 3] as [UInt64])
    func mutatedDocuments(seed: UInt64) throws {
        let schema = try SchemaIndex(parsing: Self.schemaText)
        var random = SeededNumbers(seed: seed)
        #expect(try exercise(Self.documentText, schema, "unchanged"))
        let text = Array(Self.documentText.utf8)
        var parsed = 0
        for round in 0..<4_000 {
            if try exercise(mutate(text, using: &random), schema, "seed \(seed), round \(round)") { parsed += 1 }
        }
        #expect(parsed > 50, "seed \(seed): mutations should leave some texts valid")
    }

    @Test("Mutated schemas are built or refused", arguments: [4, 5] as [UInt64])
    func mutatedSchemas(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        #expect(try exerciseSchema(Self.schemaText, "unchanged"))
        let text = Array(Self.schemaText.utf8)
        for round in 0..<1_500 {
            _ = try exerciseSchema(mutate(text, using: &random), "seed \(seed), round \(round)")
        }
    }

    @Test("Token soups parse or are refused", arguments: [6, 7] as [UInt64])
    func soups(seed: UInt64) throws {
        let schema = try SchemaIndex(parsing: Self.schemaText)
        var random = SeededNumbers(seed: seed)
        for round in 0..<8_000 {
            let text = soup(using: &random)
            _ = try exercise(text, schema, "seed \(seed), round \(round)")
            _ = try exercise("{" + text + "}", schema, "seed \(seed), round \(round)")
            if (try? SchemaDocument(parsing: text)) != nil {
                _ = try exerciseSchema("type Query { a: Int } " + text, "seed \(seed), round \(round)")
            }
        }
    }

    @Test("Bytes without sense are refused", arguments: [8] as [UInt64])
    func noise(seed: UInt64) throws {
        let schema = try SchemaIndex(parsing: Self.schemaText)
        var random = SeededNumbers(seed: seed)
        for round in 0..<4_000 {
            let length = Int.random(in: 0...30, using: &random)
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = try exercise(String(decoding: bytes, as: UTF8.self), schema, "seed \(seed), round \(round)")
            _ = try? SchemaIndex(serialized: bytes)
        }
    }

    @Test("Generated documents print to what parses to them, valid or not", arguments: [9] as [UInt64])
    func generated(seed: UInt64) throws {
        let schema = try SchemaIndex(parsing: Self.schemaText)
        var generator = DocumentGenerator(seed: seed)
        for round in 0..<1_500 {
            let document = generator.document()
            let printed = document.printed()
            #expect(try Document(parsing: printed) == document, "seed \(seed), round \(round): \(printed)")
            _ = validate(document, against: schema, budget: 10_000)
        }
    }

    @Test(
        "Mutated real texts parse or are refused",
        .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"), arguments: [10] as [UInt64])
    func realTexts(seed: UInt64) throws {
        let schema = try RealData.schema("starwars/schema.graphqls")
        var random = SeededNumbers(seed: seed)
        let operations = Array(try RealData.starWarsOperations().utf8)
        for round in 0..<200 {
            _ = try exercise(mutate(operations, using: &random), schema, "seed \(seed), round \(round)")
        }
        let definitions = Array(try RealData.text("starwars/schema.graphqls").utf8)
        for round in 0..<200 {
            _ = try exerciseSchema(mutate(definitions, using: &random), "seed \(seed), round \(round)")
        }
    }
}
