import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("What a synchronization keeps of its pages")
struct SyncMarkTests {
    private func keys(_ bytes: [UInt8]) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try unsafe SyncMark.forEachKey(in: bytes) { unsafe keys.append(Array($0)) }
        return keys
    }

    @Test("Keys of all bytes and lengths come back")
    func encoded() throws {
        let all = [[], [0], [0, 0, 255], Array("Todo:1".utf8), Array(repeating: 0, count: 505)] as [[UInt8]]
        let read = try keys(SyncMark.encoded(all))
        #expect(read == all)
        let none = try keys(SyncMark.encoded([]))
        #expect(none == [])
    }

    @Test(
        "Bytes that end within a key are an error",
        arguments: [[1], [1, 0], [3, 0, 65, 66], [0, 1, 65]] as [[UInt8]])
    func cut(bytes: [UInt8]) {
        #expect(throws: RecordError.self) { _ = try keys(bytes) }
    }

    @Test("A time with which nothing can be computed is none", arguments: [Int64.min, -1, 1 << 53 + 1, .max])
    func times(startedAt: Int64) {
        let stored = Array(#"{"name":"todos","types":["Todo"],"startedAt":\#(startedAt)}"#.utf8)
        #expect(SyncPosition(stored)?.startedAt == nil)
    }
}
