import Testing

@testable import LarderAWS

@Suite("Which bytes a storage says that it sends")
struct ContentRangeTests {
    @Test(
        "A range is known with its object's size, or without where the storage does not know that",
        arguments: [("bytes 0-9/100", 0..<10, 100), ("Bytes 5-9/10", 5..<10, 10), ("bytes 0-0/*", 0..<1, nil)]
            as [(String, Range<Int64>, Int64?)])
    func known(text: String, range: Range<Int64>, size: Int64?) throws {
        let found = try #require(ContentRange(text))
        #expect(found.range == range)
        #expect(found.size == size)
    }

    @Test(
        "What is no range, or ends behind its object, is not taken for one",
        arguments: [
            "bytes 0-9/many", "bytes 0-9/", "bytes 0-9", "bytes 9-0/100", "bytes 0-9/9", "items 0-9/100", "",
            "bytes */100", "bytes 0-9223372036854775807/*", "bytes -1-9/100", "bytes 1--9/100", "bytes 0-9/-100",
            "bytes 0-9/100 ", "bytes 0-9/99999999999999999999",
        ])
    func unknown(text: String) { #expect(ContentRange(text) == nil) }
}
