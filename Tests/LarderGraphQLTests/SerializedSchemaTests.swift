import LarderTestSupport
import Testing

@testable import LarderGraphQL

@Suite("Serialized schemas")
struct SerializedSchemaTests {
    private static let text = """
        type Query { a(x: In = {l: [1, "é"]}): [Node!]! @cacheControl(maxAge: 3) b: U } interface Node { id: ID! }
        type T implements Node @typePolicy(keyFields: "id") { id: ID! } union U = T | Query enum E { A B }
        type P @typePolicy(parts: "replace") { x: Int } extend type Query { p: P }
        extend type Query @fieldPolicy(forField: "p", parts: "merge")
        input In { l: [String] e: E = A } extend type Query @fieldPolicy(forField: "b", keyArgs: [])
        """

    private func code(_ bytes: [UInt8]) -> SchemaError.Code? {
        do {
            _ = try SchemaIndex(serialized: bytes)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Bytes cut short anywhere are refused")
    func truncated() throws {
        let bytes = try SchemaIndex(parsing: Self.text).serialized()
        for length in 0..<bytes.count { #expect(code(Array(bytes[..<length])) == .serializedForm) }
        #expect(code(bytes + [0]) == .serializedForm)
        var longer = bytes + [0]
        Self.seal(&longer)
        #expect(code(longer) == .serializedForm)
    }

    @Test("A flipped bit anywhere is refused")
    func flipped() throws {
        let bytes = try SchemaIndex(parsing: Self.text).serialized()
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1 << UInt8(index % 8)
            #expect(code(damaged) == .serializedForm, "byte \(index)")
        }
    }

    @Test("Strings that are equal only after normalization stay different")
    func normalization() throws {
        let text = "type Query { a(x: String = \"e\u{301}\", y: String = \"\u{E9}\"): Int }"
        let schema = try SchemaIndex(serialized: SchemaIndex(parsing: text).serialized())
        let arguments = try #require(schema.field(named: "a", of: schema.queryType)?.arguments)
        let lengths = arguments.map { argument in
            if case .string(let value)? = argument.defaultValue { value.utf8.count } else { 0 }
        }
        #expect(lengths == [3, 2])
    }

    @Test("Other bytes and other versions are refused")
    func foreign() throws {
        #expect(code([]) == .serializedForm)
        #expect(code(Array("type Query { a: Int } and more than a header".utf8)) == .serializedForm)
        var later = try SchemaIndex(parsing: Self.text).serialized()
        later[8] += 1
        #expect(throws: SchemaError(.serializedForm, "The serialized schema is of another version")) {
            try SchemaIndex(serialized: later)
        }
    }

    @Test("Damage under a checksum that fits is refused or read, and never traps")
    func forged() throws {
        let bytes = try SchemaIndex(parsing: Self.text).serialized()
        let seed: UInt64 = 7
        var random = SeededNumbers(seed: seed)
        var refused = 0
        for round in 0..<5_000 {
            var forged = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                forged[Int.random(in: 20..<forged.count, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            SerializedSchemaTests.seal(&forged)
            do {
                let schema = try SchemaIndex(serialized: forged)
                // Whatever was read can be worked with.
                _ = validate(try Document(parsing: "{ a { id } b { ... on T { id } } }"), against: schema)
                #expect(try SchemaIndex(serialized: schema.serialized()) == schema, "seed \(seed), round \(round)")
            } catch let error as SchemaError {
                #expect(error.code == .serializedForm, "seed \(seed), round \(round)")
                refused += 1
            }
        }
        #expect(refused > 500)
    }

    @Test("A text that is no UTF-8 is damage, under a checksum that fits")
    func badText() throws {
        var bytes = try SchemaIndex(parsing: Self.text).serialized()
        let accent = try #require(bytes.indices.first { bytes[$0...].starts(with: "é".utf8) })
        bytes[accent + 1] = bytes[accent]
        Self.seal(&bytes)
        #expect(code(bytes) == .serializedForm)
    }

    @Test("A root that is no object type, and possible types that do not ascend, are damage")
    func inconsistent() throws {
        var schema = try SchemaIndex(parsing: Self.text)
        let scalar = try #require(schema.type(named: "Int"))
        for roots in [(scalar, nil), (schema.queryType, scalar)] as [(SchemaIndex.TypeID, SchemaIndex.TypeID?)] {
            let rooted = SchemaIndex(
                types: schema.types, directives: schema.directives, queryType: roots.0, mutationType: roots.1,
                subscriptionType: nil)
            #expect(code(rooted.serialized()) == .serializedForm)
        }
        let union = try #require(schema.type(named: "U"))
        #expect(schema.types[union].possibleTypes.count == 2)
        schema.types[union].possibleTypes.reverse()
        #expect(code(schema.serialized()) == .serializedForm)
    }

    /// Puts the checksum that belongs to the bytes in its place.
    static func seal(_ bytes: inout [UInt8]) {
        let sum = SerializedSchema.checksum(bytes, from: SerializedSchema.headerLength)
        bytes.replaceSubrange(12..<20, with: SerializedSchema.littleEndian(sum))
    }
}
