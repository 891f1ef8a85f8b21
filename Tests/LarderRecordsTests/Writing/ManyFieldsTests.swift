import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Operations with many fields", .timeLimit(.minutes(10)))
struct ManyFieldsTests {
    @Test("Ten thousand aliases of one object's fields are written and read")
    func manyAliases() async throws {
        try await withSampleCache(movieSchema) { sample in
            let count = 10_000
            let query = "{ " + (0..<count).map { "n\($0): note(text: \"\($0)\")" }.joined(separator: " ") + " }"
            let operation = try sample.operation(query)
            let text = "{\"data\":{" + (0..<count).map { "\"n\($0)\":\"\($0)\"" }.joined(separator: ",") + "}}"
            try await sample.write(operation, response: text)
            #expect(try sample.cache.read(operation).response["n\(count - 1)"]?.string == "\(count - 1)")
        }
    }
}
