import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("What a synchronization keeps of its pages")
struct SyncMarkTests {
    private func keys(_ mark: SyncMark) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try unsafe mark.forEachKey { unsafe keys.append(Array($0)) }
        return keys
    }

    private func mark(_ keys: [[UInt8]]) -> SyncMark {
        var mark = SyncMark(stored: [])
        for key in keys { unsafe key.withUnsafeBytes { unsafe mark.append($0) } }
        return mark
    }

    @Test("Keys of all bytes and lengths come back")
    func encoded() throws {
        let all = [[], [0], [0, 0, 255], Array("Todo:1".utf8), Array(repeating: 0, count: 505)] as [[UInt8]]
        let read = try keys(mark(all))
        #expect(read == all)
        let none = try keys(mark([]))
        #expect(none == [])
    }

    @Test(
        "Bytes that end within a key are an error",
        arguments: [[1], [1, 0], [3, 0, 65, 66], [0, 1, 65]] as [[UInt8]])
    func cut(bytes: [UInt8]) {
        #expect(throws: RecordError.self) { _ = try keys(SyncMark(stored: bytes)) }
    }

    @Test("A response's keys are marked as they are stored, each once, long ones shortened; parts have none")
    func parsed() throws {
        let schema = try SchemaIndex(
            parsing: "type Query { all: [Todo] } type Todo { id: ID! tag: Tag } type Tag { text: Int }")
        let operation = try CompiledOperation(
            operation: nil, in: Document(parsing: "{ all { id tag { text } } }"), schema
        ).bound([:])
        let long = String(repeating: "x", count: 600)
        let items = ["1", long, "2", "1"].map {
            #"{"__typename":"Todo","id":"\#($0)","tag":{"__typename":"Tag","text":1}}"#
        }
        let response = try ParsedResponse.parse(
            Array(#"{"data":{"all":[\#(items.joined(separator: ","))]}}"#.utf8), along: operation.layout)
        let read = try keys(SyncMark(response))
        #expect(read == ["Todo:1", "Todo:\(long)", "Todo:2"].map { StoredKey.bytes(Array($0.utf8)) })
        #expect(read.map(\.count) == [6, 505, 6])
    }

    @Test("Keys that a walk had are found among any number of others, and no other key")
    func walked() throws {
        var walked = WalkedKeys()
        func contains(_ number: Int) -> Bool {
            unsafe Array("Todo:\(number)".utf8).withUnsafeBytes { unsafe walked.contains($0) }
        }
        #expect(!contains(0))
        for start in stride(from: 0, to: 4_000, by: 500) {
            try walked.insert(mark((start..<start + 500).map { Array("Todo:\($0)".utf8) }))
            try walked.insert(mark([Array("Todo:\(start)".utf8)]))
            #expect(walked.count == start + 500)
            #expect((0..<start + 500).allSatisfy(contains))
            #expect(!(start + 500..<start + 10_000).contains(where: contains))
        }
    }

    @Test("A time with which nothing can be computed is none", arguments: [Int64.min, -1, 1 << 53 + 1, .max])
    func times(startedAt: Int64) {
        let stored = Array(#"{"name":"todos","types":["Todo"],"startedAt":\#(startedAt)}"#.utf8)
        #expect(SyncPosition(stored)?.startedAt == nil)
    }
}
