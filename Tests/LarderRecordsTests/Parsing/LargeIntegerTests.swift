import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Large integers", .timeLimit(.minutes(10)))
struct LargeIntegerTests {
    @Test("An integer is given as a double where a double keeps it exactly, and only there")
    func doubles() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { year } }"
            for (year, double) in [
                (9_007_199_254_740_992, 9_007_199_254_740_992), (9_007_199_254_740_993, nil),
                (-9_007_199_254_740_993, nil),
            ] as [(Int64, Double?)] {
                try await sample.write(query, data: #"{"movie":{"__typename":"Movie","id":1,"year":\#(year)}}"#)
                let value = try #require(try sample.cache.read(sample.operation(query)).response["movie"]?["year"])
                #expect(value.int == year && value.double == double)
            }
        }
    }

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
