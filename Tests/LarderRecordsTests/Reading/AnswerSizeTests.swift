import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("The size of an answer", .timeLimit(.minutes(10)))
struct AnswerSizeTests {
    private static let schema = "type Query { boxes: [Box!]! } type Box { id: ID! text: String open: Boolean }"

    /// Runs `body` with the cache of these boxes, opened so that an answer may take so many bytes.
    private func withBoxes(
        _ body: (_ open: (_ limit: Int) throws -> SampleCache) async throws -> Void
    ) async throws {
        let schema = try SchemaIndex(parsing: Self.schema)
        try await withTemporaryFolder { folder in
            let sample = try SampleCache(schema, path: folder.path)
            let boxes = (0..<50).map { #"{"id":"\#($0)","text":"\#(String(repeating: "é", count: 1 + $0))"}"# }
            try await sample.write("{ boxes { id text } }", data: #"{"boxes":[\#(boxes.joined(separator: ","))]}"#)
            try sample.cache.close()
            try await body { limit in
                var options = RecordCache.Options()
                options.maximumAnswerSize = limit
                return try SampleCache(schema, path: folder.path, options: options)
            }
        }
    }

    private func size(_ sample: SampleCache, _ text: String) throws -> Int {
        defer { try? sample.cache.close() }
        return try sample.cache.read(sample.operation(text)).response.byteCount
    }

    @Test("An answer may take what the limit says, and not one byte more, however often it is asked for")
    func edge() async throws {
        let text = "{ boxes { id text } }"
        try await withBoxes { open in
            let size = try size(open(1 << 20), text)
            try #require(size > 50 * 50)
            for limit in [size, size + 1] {
                let sample = try open(limit)
                let operation = try sample.operation(text)
                for _ in 0..<2 {
                    let response = try sample.cache.read(operation).response
                    #expect(response.byteCount == size)
                    #expect(response["boxes"]?[49]?["text"]?.string?.count == 50)
                }
                try sample.cache.close()
            }
            for limit in [size - 1, size / 2, 1, 0, -1, .min] {
                let sample = try open(limit)
                let operation = try sample.operation(text)
                for _ in 0..<2 {
                    let error = #expect(throws: RecordError.self) { try sample.cache.read(operation) }
                    #expect(error?.code == .tooLarge, "\(limit)")
                }
                try sample.cache.close()
            }
        }
    }

    @Test("Missing paths count too: below the limit the answer lists them, above it the answer is too large")
    func missing() async throws {
        let text = "{ boxes { id open } }"
        try await withBoxes { open in
            let size = try size(open(1 << 20), text)
            // Each of the fifty paths has three steps, as boxes[7].open.
            let withMissing = size + 50 * (64 + 3 * 32)
            let roomy = try open(withMissing)
            #expect(try roomy.missing(text).count == 50)
            try roomy.cache.close()
            let tight = try open(size)
            let error = #expect(throws: RecordError.self) { try tight.missing(text) }
            #expect(error?.code == .tooLarge)
            try tight.cache.close()
        }
    }

    @Test("A limit beyond what any answer can take is no limit, and nothing overflows")
    func greatest() async throws {
        let text = "{ boxes { id text open } }"
        try await withBoxes { open in
            let size = try size(open(1 << 20), text)
            #expect(try self.size(open(.max), text) == size)
        }
    }
}
