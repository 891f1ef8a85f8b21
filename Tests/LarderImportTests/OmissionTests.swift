import Foundation
import Larder
import LarderImport
import LarderTestSupport
import Testing

@Suite("What an import leaves out, and the reasons that it gives", .timeLimit(.minutes(10)))
struct OmissionTests {
    /// The examples that the report gives for a reason.
    private func examples(_ report: ImportReport, _ reason: Omission.Reason) -> [String] {
        report.omissions.first { $0.reason == reason }?.examples ?? []
    }

    @Test("A row without a key is unreadable, whatever object its record says, and is named by its number")
    func rowWithoutKey() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .recordsOfApollo2)
            try fixture.insert(
                "INSERT INTO records (key, record) VALUES (?, ?)",
                [nil, #"{"__typename":"Cook","id":"a","name":"Ada"}"#])
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.objects == .init() && report.omitted(.record, .unreadable) == 1)
            #expect(examples(report, .unreadable) == ["row 1"])
        }
    }

    @Test("A field that the store refuses is named with the reason")
    func refusedField() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("QUERY_ROOT", #"{"count":"three"}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            let example = try #require(examples(report, .refused).first)
            let start = "QUERY_ROOT.count: "
            #expect(example.hasPrefix(start) && example.count > start.count)
        }
    }

    @Test("A part that only a field holds which is left out is left out too, and not counted among the parts")
    func partOfLeftField() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record(
                "Recipe:1",
                #"""
                {"__typename":"Recipe","id":"1","timing":{"$reference":"t"},
                 "steps":[{"$reference":"s"},{"$reference":"gone"}]}
                """#)
            try fixture.record("s", #"{"__typename":"Step","text":"Cut"}"#)
            try fixture.record("t", #"{"__typename":"Timing","cook":5}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(examples(report, .danglingReference).count == 1 && report.parts == 1)
            #expect(examples(report, .unreferenced) == ["s"])
        }
    }

    @Test("A field that only the middle one of three parts lacks is uneven, and the parts are taken without it")
    func unevenInTheMiddle() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record(
                "Recipe:1",
                #"""
                {"__typename":"Recipe","id":"1",
                 "steps":[{"$reference":"a"},{"$reference":"b"},{"$reference":"c"}]}
                """#)
            try fixture.record("a", #"{"__typename":"Step","text":"Cut","minutes":1}"#)
            try fixture.record("b", #"{"__typename":"Step","text":"Boil"}"#)
            try fixture.record("c", #"{"__typename":"Step","text":"Serve","minutes":2}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.omissions.map(\.reason) == [.unevenElements])
            let found = try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { steps { text } }"))
            #expect(
                String(decoding: found.json, as: UTF8.self)
                    == #"{"steps":[{"text":"Cut"},{"text":"Boil"},{"text":"Serve"}]}"#)
        }
    }

    @Test("A mutation that the schema does not allow is named with what does not fit")
    func refusedMutation() async throws {
        try await withRecipeBox { app, folder in
            let path = folder.appending(path: "offlineMutations.db").path
            let fixture = try ForeignFixture(path, .mutations)
            try fixture.mutation("A", #"{"query":"mutation Burn { burn { id } }"}"#)
            fixture.close()
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            let example = try #require(examples(report, .refused).first)
            #expect(example.hasPrefix("A (Burn): ") && example.contains("burn"))
        }
    }

    @Test("A mutation whose variables are no object is unreadable, and not taken without them")
    func strangeVariables() async throws {
        try await withRecipeBox { app, folder in
            let path = folder.appending(path: "offlineMutations.db").path
            let fixture = try ForeignFixture(path, .mutations)
            try fixture.mutation("A", #"{"query":"mutation { rate(id: 1, stars: 5) { id } }","variables":[]}"#)
            fixture.close()
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            #expect(report.mutations == .init() && report.omitted(.mutation, .unreadable) == 1)
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("A mutation whose row has no identifier is unreadable, and not taken")
    func mutationWithoutIdentifier() async throws {
        try await withRecipeBox { app, folder in
            let path = folder.appending(path: "offlineMutations.db").path
            let fixture = try ForeignFixture(path)
            try fixture.run(
                """
                CREATE TABLE mutation_records (_id INTEGER PRIMARY KEY, recordIdentifier TEXT, data BLOB,
                    recordState TEXT, s3Bucket TEXT, s3Key TEXT, s3Region TEXT, s3LocalUri TEXT, s3MimeType TEXT)
                """)
            try fixture.insert(
                "INSERT INTO mutation_records (recordIdentifier, data, recordState) VALUES (?, ?, ?)",
                [nil, #"{"query":"mutation { rate(id: 1, stars: 5) { id } }"}"#, "inQueue"])
            fixture.close()
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            #expect(report.mutations == .init() && report.omitted(.mutation, .unreadable) == 1)
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("A field that only some parts within the parts of a list know is left out, and named")
    func unevenWithin() async throws {
        try await withRecipeBox { _, folder in
            let schema = """
                type Query { box: Box } type Box { id: ID! rows: [Row] }
                type Row { label: String cell: Cell } type Cell { x: Int y: Int }
                """
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record(
                "Box:1", #"{"__typename":"Box","id":"1","rows":[{"$reference":"a"},{"$reference":"b"}]}"#)
            try fixture.record("a", #"{"__typename":"Row","label":"A","cell":{"$reference":"a.cell"}}"#)
            try fixture.record("b", #"{"__typename":"Row","label":"B","cell":{"$reference":"b.cell"}}"#)
            try fixture.record("a.cell", #"{"__typename":"Cell","x":1,"y":2}"#)
            try fixture.record("b.cell", #"{"__typename":"Cell","x":1}"#)
            fixture.close()
            let report = try await source(fixture.path, schema: schema).inspect()
            #expect(report.omitted(.field, .unevenElements) == 1)
            #expect(examples(report, .unevenElements).first?.contains("Cell.y") == true)
        }
    }
}
