import Foundation
import Testing

@testable import LarderAWS

@Suite("Texts of a storage's answers")
struct AnswerTextTests {
    @Test(
        "A checksum has four bytes, and that of an object's parts is none",
        arguments: [("4waSgw==", 0xE306_9283), ("AAAA", nil), ("AAAAAAA=", nil), ("4waSgw==-2", nil), ("", nil)]
            as [(String, UInt32?)])
    func checksum(text: String, expected: UInt32?) { #expect(Checksums.crc32c(text) == expected) }

    @Test("Elements may stand in each other, 32 deep", arguments: [32, 33])
    func depth(count: Int) {
        let text = String(repeating: "<a>", count: count) + String(repeating: "</a>", count: count)
        #expect((XMLNode(Array(text.utf8)) != nil) == (count == 32))
    }

    @Test("A list of as many parts as an object may have is read, where the storage gives it at once")
    func longList() {
        let part = """
            <Part><PartNumber>1</PartNumber><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
            <ETag>d41d8cd98f00b204e9800998ecf8427e</ETag><Size>5242880</Size>\
            <ChecksumCRC32C>4waSgw==</ChecksumCRC32C></Part>
            """
        let text = "<ListPartsResult>\(String(repeating: part, count: 10_000))</ListPartsResult>"
        #expect(XMLNode(Array(text.utf8))?.all("Part").count == 10_000)
    }

    @Test(
        "A clock that differs from the server's by four minutes signs as it is",
        arguments: [("13:50:40", false), ("13:50:41", true), ("13:42:40", false), ("13:42:39", true)])
    func clock(time: String, isCorrected: Bool) {
        // At 13:46:40.
        let clock = SigningClock { Date(timeIntervalSince1970: 1_000_000) }
        clock.hear("Mon, 12 Jan 1970 \(time) GMT")
        #expect(clock.correct(from: 0) == isCorrected)
    }
}
