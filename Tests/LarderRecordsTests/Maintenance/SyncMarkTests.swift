import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("What a synchronization keeps of its pages")
struct SyncMarkTests {
    @Test("Keys of all bytes and lengths come back")
    func keys() throws {
        let keys = [[], [0], [0, 0, 255], Array("Todo:1".utf8), Array(repeating: 0, count: 505)] as [[UInt8]]
        #expect(try SyncMark.keys(SyncMark.encoded(keys)) == Set(keys))
        #expect(try SyncMark.keys(SyncMark.encoded([])) == [])
    }

    @Test(
        "Bytes that end within a key are an error",
        arguments: [[1], [1, 0], [3, 0, 65, 66], [0, 1, 65]] as [[UInt8]])
    func cut(bytes: [UInt8]) {
        #expect(throws: RecordError.self) { try SyncMark.keys(bytes) }
    }

    @Test("A time with which nothing can be computed is none", arguments: [Int64.min, -1, 1 << 53 + 1, .max])
    func times(startedAt: Int64) {
        let stored = Array(#"{"name":"todos","types":["Todo"],"startedAt":\#(startedAt)}"#.utf8)
        #expect(SyncPosition(stored)?.startedAt == nil)
    }
}
