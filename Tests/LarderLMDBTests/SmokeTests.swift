import LarderTestSupport
import Testing

@testable import LarderLMDB

@Test("What was committed is read back, by key and through a cursor")
func smoke() async throws {
    try await withTemporaryFolder { folder in
        let environment = try Environment(
            folder: folder.path,
            tables: [.init(name: "records", keys: .integers), .init(name: "keys", keys: .bytes)]
        )
        let records = try #require(environment.table("records"))
        let keys = try #require(environment.table("keys"))
        func fill() throws {
            var transaction = try environment.beginWrite(deadline: .now + .seconds(1))
            for id in 1...100 as ClosedRange<UInt64> {
                let bytes = Array("value \(id)".utf8)
                try transaction.put(id, bytes.span.bytes, in: records, append: true)
                try transaction.put(Array("key \(id)".utf8).span.bytes, bytes.span.bytes, in: keys)
            }
            try transaction.commit()
        }
        try fill()
        let transaction = try environment.beginRead()
        var cursor = try transaction.cursor(in: records)
        for id in 1...100 as ClosedRange<UInt64> {
            let expected = Array("value \(id)".utf8)
            let one = try #require(try transaction.get(id, in: records)?.withUnsafeBytes { Array($0) })
            #expect(one == expected)
            let two = try #require(try cursor.value(at: id)?.withUnsafeBytes { Array($0) })
            #expect(two == expected)
        }
        #expect(try cursor.value(at: 101) == nil)
        #expect(try transaction.entryCount(of: keys) == 100)
    }
}
