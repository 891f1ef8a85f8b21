import Foundation
import LarderGraphQL
import Testing

@testable import Larder

/// The values that become of a program's own types.
@Suite("Encoding a program's own types")
struct ValueEncoderTests {
    /// A property of each kind that the compiler leaves out where it is nil.
    private struct Sheet: Encodable {
        var truth: Bool?
        var text: String?
        var double: Double?
        var float: Float?
        var int: Int?
        var int8: Int8?
        var int16: Int16?
        var int32: Int32?
        var int64: Int64?
        var uint: UInt?
        var uint8: UInt8?
        var uint16: UInt16?
        var uint32: UInt32?
        var uint64: UInt64?
        var list: [Int]?
    }

    @Test("A property that is nil is null, and is not left out, whatever its type")
    func empty() throws {
        guard case .object(let members) = try ValueEncoder.value(of: Sheet()) else {
            Issue.record("it is no object")
            return
        }
        #expect(members.count == 15)
        for (name, value) in members { #expect(value == .null, "\(name)") }
    }

    @Test("A property of each type is what it is, also where no integer of GraphQL can be so large")
    func full() throws {
        let sheet = Sheet(
            truth: true, text: "a", double: 0.5, float: 0.1, int: -1, int8: -2, int16: -3, int32: -4, int64: .min,
            uint: 5, uint8: 6, uint16: 7, uint32: 8, uint64: .max, list: [9])
        let expected: Value = [
            "truth": true, "text": "a", "double": 0.5, "float": 0.1, "int": -1, "int8": -2, "int16": -3, "int32": -4,
            "int64": .int(.min), "uint": 5, "uint8": 6, "uint16": 7, "uint32": 8,
            "uint64": .number("18446744073709551615"), "list": [9],
        ]
        #expect(try ValueEncoder.value(of: sheet) == expected)
    }

    /// Writes itself by hand.
    private struct HandWritten: Encodable {
        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            try list.encode(1)
            try list.encodeNil()
            var inner = list.nestedUnkeyedContainer()
            try inner.encode(list.count)
            try Alone().encode(to: list.superEncoder())
        }
    }

    /// One value, which may be none.
    private struct Alone: Encodable {
        var number: Int? = 7

        func encode(to encoder: any Encoder) throws {
            var single = encoder.singleValueContainer()
            if let number { try single.encode(number) } else { try single.encodeNil() }
        }
    }

    /// Asks for its containers twice, as a class and the one that it inherits from do.
    private struct InTwoParts: Encodable {
        var isList: Bool

        func encode(to encoder: any Encoder) throws {
            for number in 1...2 {
                if isList {
                    var list = encoder.unkeyedContainer()
                    try list.encode(number)
                } else {
                    var members = encoder.container(keyedBy: Name.self)
                    try members.encode(number, forKey: number == 1 ? .first : .second)
                }
            }
        }

        private enum Name: String, CodingKey { case first, second }
    }

    @Test("A decimal keeps all of its digits")
    func decimal() throws {
        for text in ["0.12345678901234567890123", "12345678901234567890123", "-7"] {
            let decimal = try #require(Decimal(string: text))
            #expect(String(decoding: try ValueEncoder.value(of: decimal).json, as: UTF8.self) == text)
        }
    }

    /// Types of Foundation, each in the form in which it is read.
    private struct Picture: Encodable {
        var page: URL?
        var bytes: Data
        var id: UUID
        var days: [Date?]
    }

    @Test("URLs, data, UUIDs and dates become the texts from which they are read")
    func textsOfFoundation() throws {
        let id = UUID()
        let page = try #require(URL(string: "https://example.org/a?b"))
        let picture = Picture(
            page: page, bytes: Data([1, 2, 3]), id: id, days: [Date(timeIntervalSince1970: 1_700_000_000), nil])
        let expected: Value = [
            "page": "https://example.org/a?b", "bytes": "AQID", "id": .string(id.uuidString),
            "days": ["2023-11-14T22:13:20Z", .null],
        ]
        #expect(try ValueEncoder.value(of: picture) == expected)
    }

    @Test("A date keeps each of its milliseconds, and has none where there are none")
    func milliseconds() throws {
        for millisecond in 0..<1_000 {
            let date = Date(timeIntervalSince1970: 1_700_000_000 + Double(millisecond) / 1_000)
            let fraction = millisecond == 0 ? "" : String(format: ".%03d", millisecond)
            #expect(try ValueEncoder.value(of: date) == .string("2023-11-14T22:13:20\(fraction)Z"))
        }
    }

    @Test("A type that writes itself in two parts loses none")
    func inTwoParts() throws {
        #expect(try ValueEncoder.value(of: InTwoParts(isList: true)) == [1, 2])
        #expect(try ValueEncoder.value(of: InTwoParts(isList: false)) == ["first": 1, "second": 2])
    }

    @Test("Types that write themselves by hand may use lists, nothing, and one value alone")
    func handWritten() throws {
        #expect(try ValueEncoder.value(of: HandWritten()) == [1, .null, [3], 7])
        #expect(try ValueEncoder.value(of: Alone(number: nil)) == .null)
    }
}
