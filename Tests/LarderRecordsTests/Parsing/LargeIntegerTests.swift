import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Large integers", .timeLimit(.minutes(10)))
struct LargeIntegerTests {
    @Test("Large whole numbers are integers, however many zeros they end in")
    func largeIntegers() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { id year } }"
            let data = #"{"movie":{"__typename":"Movie","id":10000000000000000000,"year":100000000000000000000}}"#
            try await sample.write(query, data: data)
            #expect(
                try sample.json(query) == #"{"movie":{"id":"10000000000000000000","year":100000000000000000000}}"#)
            #expect(try CacheDump(sample.cache).records.values.compactMap(\.key).contains("Movie:10000000000000000000"))
            let operation = try sample.operation(query)
            #expect(
                parseFault(
                    #"{"data":{"movie":{"__typename":"Movie","id":1,"year":0.1000000000000000055511151231257827}}}"#,
                    along: operation) == "responseMismatch movie.year")
        }
    }
}
