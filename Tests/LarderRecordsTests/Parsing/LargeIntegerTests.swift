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

    @Test("The text of an id is that of a whole number of any size, and of nothing that may have had a fraction")
    func textsOfIDs() {
        let texts: [(Value, String?)] = [
            (.string("x"), "x"), (.int(-7), "-7"), (.number("123456789012345678901"), "123456789012345678901"),
            (.float(1e19), "10000000000000000000"), (.float(7), nil), (.float(1.5), nil), (.number("7.0"), nil),
            (.boolean(true), nil), (.null, nil),
        ]
        for (value, text) in texts { #expect(value.idText == text, "\(value)") }
    }

    @Test("Integers at the bounds of their stored form come back as they were, and are the same when they come again")
    func storedBounds() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { raw } }"
            for bound in [1 << 27, 1 << 28, 1 << 31, 1 << 32] as [Int64] {
                for number in [bound - 1, bound, bound + 1, -bound - 1, -bound, -bound + 1] {
                    #expect(ValueWord.fitsSmallInt(number) == (number >= -(1 << 27) && number < 1 << 27))
                    try await sample.write(
                        "{ count }", data: "{\"count\":\(Int32(truncatingIfNeeded: number))}")
                    let data = #"{"movie":{"__typename":"Movie","id":"1","raw":\#(number)}}"#
                    try await sample.write(query, data: data)
                    #expect(try sample.json(query) == #"{"movie":{"raw":\#(number)}}"#)
                    #expect(try sample.json("{ count }") == "{\"count\":\(Int32(truncatingIfNeeded: number))}")
                    let again = try await sample.write(query, data: data)
                    #expect(again.changes.isEmpty)
                }
            }
        }
    }

    @Test("An ID that comes as a number is the text of its digits, and minus zero is zero")
    func numericIDs() async throws {
        try await withSampleCache(movieSchema) { sample in
            for (number, id) in [("0", "0"), ("-0", "0"), ("7", "7"), ("-7", "-7"), ("10", "10")] {
                try await sample.write(
                    "{ movie(id: 1) { id } }", data: #"{"movie":{"__typename":"Movie","id":\#(number)}}"#)
                #expect(try sample.json("{ movie(id: 1) { id } }") == #"{"movie":{"id":"\#(id)"}}"#)
            }
        }
    }
}
