import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Missing paths", .timeLimit(.minutes(10)))
struct MissingPathTests {
    @Test("Missing fields of an object that is null are not reported")
    func missingBelowNull() async throws {
        try await withSampleCache(movieSchema) { sample in
            let data = #"{"movie":{"__typename":"Movie","id":"1","required":{"__typename":"User","id":"7"}}}"#
            try await sample.write("{ movie(id: 1) { id required { id } } }", data: data)
            try await sample.changing { try await $0.remove(keys: ["User:7"], as: .deleted) }
            for query in ["{ movie(id: 1) { title required { id } } }", "{ movie(id: 1) { required { id } title } }"] {
                #expect(try sample.json(query) == #"{"movie":null}"#)
                #expect(try sample.missing(query) == [])
            }
        }
    }
}
