import Larder
import LarderImport
import LarderTestSupport
import Testing

@Suite("What a store knows before an import", .timeLimit(.minutes(10)))
struct KnownDataTests {
    @Test("A null that the store has stays, also where the files have a value")
    func null() async throws {
        try await withRecipeBox { app, folder in
            let query = "{ recipe(id: 1) { rating author { name } } count }"
            try await app.write(
                GraphQLOperation(query),
                json: Array(
                    #"{"recipe":{"__typename":"Recipe","id":"1","rating":null,"author":null},"count":null}"#.utf8))
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("QUERY_ROOT", #"{"recipe(id:1)":{"$reference":"Recipe:1"},"count":3}"#)
            try fixture.record(
                "Recipe:1", #"{"__typename":"Recipe","id":"1","rating":2,"author":{"$reference":"Cook:a"}}"#)
            try fixture.record("Cook:a", #"{"__typename":"Cook","id":"a","name":"Ada"}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.rootFields == .init(present: 2))
            #expect(report.fields == .init(taken: 1, present: 2))
            #expect(try app.json(query) == #"{"recipe":{"rating":null,"author":null},"count":null}"#)
        }
    }

    @Test("A dry run counts a field as taken that only a queued mutation shows, and so does the import")
    func shownByMutation() async throws {
        try await withRecipeBox { app, folder in
            let shown: Value = ["rate": ["__typename": "Recipe", "id": "1", "rating": 5.0]]
            try await app.enqueue(
                GraphQLOperation("mutation { rate(id: 1, stars: 5) { id rating } }"),
                options: MutationOptions(optimisticResponse: shown))
            #expect(try app.read("Recipe:1", GraphQLFragment("fragment Card on Recipe { rating }"))["rating"] != nil)
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("QUERY_ROOT", #"{"recipe(id:1)":{"$reference":"Recipe:1"}}"#)
            try fixture.record("Recipe:1", #"{"__typename":"Recipe","id":"1","rating":2}"#)
            fixture.close()
            for isDryRun in [true, false] {
                let report = try await source(fixture.path).run(into: app, isDryRun: isDryRun)
                #expect(report.fields == .init(taken: 1), "\(isDryRun)")
            }
        }
    }
}
