import Larder
import LarderTestSupport
import Testing

/// What a program says of the types of a server's schema, in code.
@Suite("Policies of a schema from code", .timeLimit(.minutes(5)))
struct SchemaPolicyTests {
    private func withStore(
        _ change: (inout Schema) throws -> Void, _ body: (Partition) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            var schema = try Schema(parsing: fixtureSchema)
            try change(&schema)
            let store = try Store.open(at: folder, schema: schema)
            try await body(try store.partition())
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("Key fields from code take the place of the schema's own")
    func keyFields() async throws {
        let cook = GraphQLOperation("{ cook(id: 1) { name specialty } }")
        try await withStore({ try $0.setKeyFields(["name"], for: "Cook") }) { app in
            try await app.write(cook, ["cook": ["name": "Ada", "specialty": .null]])
            #expect(try app.records.inspect.keys(type: "Cook") == ["Cook:Ada"])
        }
    }

    @Test("A part that comes again is the one that is there or another one, as the code says of its type or its field")
    func parts() async throws {
        let prepare = GraphQLOperation("{ recipe(id: 1) { timing { prepare } } }")
        let both = GraphQLOperation("{ recipe(id: 1) { timing { prepare cook } } }")
        /// Whether what did not come again is still there.
        func keeps(_ change: @escaping (inout Schema) throws -> Void) async throws -> Bool {
            var keeps = false
            try await withStore(change) { app in
                try await app.write(both, ["recipe": ["id": "1", "timing": ["prepare": 1, "cook": 2]]])
                try await app.write(prepare, ["recipe": ["id": "1", "timing": ["prepare": 3]]])
                keeps = try app.read(both, allowsPartial: true)["recipe"]?["timing"]?["cook"]?.int == 2
            }
            return keeps
        }
        #expect(try await !keeps { _ in })
        #expect(try await keeps { try $0.setPartPolicy(.merge, for: "Timing") })
        #expect(try await keeps { try $0.setPartPolicy(.merge, forField: "timing", of: "Recipe") })
        #expect(
            try await !keeps { schema in
                try schema.setPartPolicy(.merge, for: "Timing")
                try schema.setPartPolicy(.replace, forField: "timing", of: "Recipe")
            })
    }

    @Test("An error in one of several texts has the name that was given to it")
    func namedTexts() {
        let error = #expect(throws: LarderError.self) {
            try Schema(
                parsing: ["type Query { a: Int }", "type { b: Int }"], names: ["server.graphql", "own.graphql"])
        }
        #expect(error?.code == .schema && error?.message.contains("own.graphql") == true, "\(error as Any)")
    }

    @Test("A schema error names the line and the column of the mistake")
    func place() {
        let error = #expect(throws: LarderError.self) { try Schema(parsing: "type Query {\n  a Int\n}") }
        #expect(error?.code == .schema && error?.message.contains(":2:5:") == true, "\(error as Any)")
    }

    @Test("A maximum age below zero is zero, and one in parts of a second has whole seconds")
    func oddAges() throws {
        func schema(_ age: Duration) throws -> Schema {
            var schema = try Schema(parsing: fixtureSchema)
            try schema.setMaxAge(age, of: "Recipe")
            return schema
        }
        #expect(try schema(.seconds(-5)) == schema(.zero))
        #expect(try schema(.milliseconds(5_900)) == schema(.seconds(5)))
        #expect(try schema(.seconds(5)) != schema(.zero))
    }

    @Test("A maximum age that is taken back is none, a type's as well as a field's")
    func takenBackAges() throws {
        let plain = try Schema(parsing: fixtureSchema)
        for field in [nil, "title"] as [String?] {
            var schema = plain
            try schema.setMaxAge(.seconds(5), forField: field, of: "Recipe")
            #expect(schema != plain)
            try schema.setMaxAge(nil, forField: field, of: "Recipe")
            #expect(schema == plain)
        }
    }

    @Test("A compiled schema is the one that it was made of, and bytes that are none are refused as a schema")
    func compiled() throws {
        var schema = try Schema(parsing: fixtureSchema)
        try schema.setMaxAge(.seconds(5), of: "Recipe")
        let bytes = schema.compiled
        #expect(try Schema(compiled: bytes) == schema)
        for damaged in [[], Array(bytes.prefix(bytes.count / 2)), Array(fixtureSchema.utf8)] {
            let error = #expect(throws: LarderError.self) { try Schema(compiled: damaged) }
            #expect(error?.code == .schema)
        }
    }
}
