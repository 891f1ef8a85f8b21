import Crypto
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

@Suite("ETags")
struct EntityTagTests {
    private let digits = "9e107d9d372bb6826bd81d3542a419d6"

    @Test("Of one piece the MD5, with quotation marks or without", arguments: ["", "\""])
    func whole(_ mark: String) {
        let tag = EntityTag(mark + digits + mark)
        #expect(tag.wholeMD5.map(hexadecimal) == digits)
        #expect(tag.parts == nil)
    }

    @Test("Of parts how many they are, and no MD5 of the whole")
    func ofParts() {
        let tag = EntityTag("\"\(digits)-12\"")
        #expect(tag.md5.map(hexadecimal) == digits)
        #expect(tag.parts == 12)
        #expect(tag.wholeMD5 == nil)
    }

    @Test("Of anything else nothing", arguments: ["", "-", "9e10", "9e107d9d372bb6826bd81d3542a419dg", "W/\"9e10\""])
    func other(_ text: String) {
        #expect(EntityTag(text).md5 == nil)
    }

    @Test("A text with more behind an MD5 than a number of parts is no ETag of parts", arguments: ["-", "-x", "-1-2"])
    func more(_ end: String) {
        let tag = EntityTag(digits + end)
        #expect(tag.md5 == nil)
        #expect(tag.parts == nil)
    }

    @Test("The tag of an object that is made of parts is that of their MD5s")
    func made() {
        let pieces = [[UInt8]("one".utf8), [UInt8]("two".utf8)].map { Array(Insecure.MD5.hash(data: $0)) }
        let tag = EntityTag(ofParts: pieces.map { EntityTag(hexadecimal($0)) })
        #expect(tag == EntityTag("\(hexadecimal(Insecure.MD5.hash(data: pieces.flatMap(\.self))))-2"))
        #expect(EntityTag(ofParts: [EntityTag(digits), EntityTag("\(digits)-2")]) == nil)
        #expect(EntityTag(ofParts: []) == nil)
    }
}
