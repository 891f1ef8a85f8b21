import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Reading what an update saw", .timeLimit(.minutes(10)))
struct UpdateTests {
    @Test("An operation reads at once what an update has written")
    func updateThenRead() async throws {
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            let parsed = try ParsedResponse.parse(
                Array(#"{"data":{"movie":{"__typename":"Movie","id":"1","title":"A"}}}"#.utf8), along: operation.layout)
            _ = try await sample.cache.update(operation) { _ in parsed }
            #expect(try sample.json(operation) == #"{"movie":{"id":"1","title":"A"}}"#)
        }
    }

    @Test("An operation reads what is written after an update gave up")
    func failedUpdateThenWrite() async throws {
        struct GivenUp: Error {}
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            await #expect(throws: RecordError.self) {
                try await sample.cache.update(operation) { _ in throw GivenUp() }
            }
            try await sample.write(
                operation, response: #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"A"}}}"#)
            #expect(try sample.json(operation) == #"{"movie":{"id":"1","title":"A"}}"#)
        }
    }
}
