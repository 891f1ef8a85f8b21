import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("The order of an answer's fields", .timeLimit(.minutes(10)))
struct FieldOrderTests {
    @Test(
        "An answer has the fields of a fragment in the fragment's place, and each field where it is asked for first",
        arguments: [
            ("... on Movie { id year } title", #""id":"1","year":2009,"title":"Up""#),
            ("title ... on Movie { id } year", #""title":"Up","id":"1","year":2009"#),
            ("year ... on Movie { id year } title", #""year":2009,"id":"1","title":"Up""#),
            ("... on Node { ... on Movie { title } id } year", #""title":"Up","id":"1","year":2009"#),
        ])
    func fragments(selection: String, fields: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            let movie = #"{"__typename":"Movie","id":"1","title":"Up","year":2009}"#
            try await sample.write("{ movie(id: 1) { id title year } }", data: #"{"movie":\#(movie)}"#)
            #expect(try sample.json("{ movie(id: 1) { \(selection) } }") == #"{"movie":{\#(fields)}}"#)
        }
    }
}
