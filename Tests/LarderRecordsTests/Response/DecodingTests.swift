import Foundation
import LarderRecords
import Testing

private func response(_ json: String) throws -> Response { try Response(json: Array(json.utf8)) }

private func decode<T: Decodable>(
    _ json: String, as type: T.Type = T.self, options: Response.DecodingOptions = .init()
) throws -> T {
    try response(json).decode(options: options)
}

@Suite("Decoding a response")
struct DecodingTests {
    private struct Scalars: Decodable, Equatable {
        var bool: Bool, string: String, double: Double, float: Float
        var int: Int, int8: Int8, int16: Int16, int32: Int32, int64: Int64, int128: Int128
        var uint: UInt, uint8: UInt8, uint16: UInt16, uint32: UInt32, uint64: UInt64, uint128: UInt128
    }

    @Test("Every kind of scalar is read from a field")
    func scalars() throws {
        let decoded = try decode(
            """
            {"bool": false, "string": "text", "double": 2.5, "float": 0.1, "int": -1, "int8": -128, "int16": -32768,
             "int32": 7, "int64": -9223372036854775808, "int128": -9223372036854775809, "uint": 1, "uint8": 255,
             "uint16": 65535, "uint32": 3, "uint64": 18446744073709551615, "uint128": 18446744073709551616}
            """, as: Scalars.self)
        #expect(
            decoded
                == Scalars(
                    bool: false, string: "text", double: 2.5, float: 0.1, int: -1, int8: -128, int16: -32768, int32: 7,
                    int64: .min, int128: Int128(Int64.min) - 1, uint: 1, uint8: 255, uint16: 65535, uint32: 3,
                    uint64: .max,
                    uint128: UInt128(UInt64.max) + 1))
    }

    @Test("Every kind of scalar is read from a list")
    func scalarLists() throws {
        #expect(try decode("[true, false]") == [true, false])
        #expect(try decode("[\"a\", \"\"]") == ["a", ""])
        #expect(try decode("[1.5, 2]") == [1.5, 2] as [Double])
        #expect(try decode("[1.5]") == [1.5] as [Float])
        #expect(try decode("[1, -2]") == [1, -2] as [Int])
        #expect(try decode("[1]") == [1] as [Int8])
        #expect(try decode("[1]") == [1] as [Int16])
        #expect(try decode("[1]") == [1] as [Int32])
        #expect(try decode("[1]") == [1] as [Int64])
        #expect(try decode("[1]") == [1] as [Int128])
        #expect(try decode("[1]") == [1] as [UInt])
        #expect(try decode("[1]") == [1] as [UInt8])
        #expect(try decode("[1]") == [1] as [UInt16])
        #expect(try decode("[1]") == [1] as [UInt32])
        #expect(try decode("[1]") == [1] as [UInt64])
        #expect(try decode("[1]") == [1] as [UInt128])
        #expect(try decode("[1, null]") == [1, nil] as [Int?])
    }

    @Test("Every kind of scalar is read as the whole")
    func scalarRoots() throws {
        #expect(try decode("true") == true)
        #expect(try decode("\"text\"") == "text")
        #expect(try decode("4") == 4)
        #expect(try decode("4.0") == 4)
        #expect(try decode("4") == 4.0)
        #expect(try decode("null", as: Int?.self) == nil)
    }

    private struct Book: Decodable, Equatable {
        var title: String
        var pages: Int?
        var author: Author?
        var tags: [String]?
    }

    private struct Author: Decodable, Equatable {
        var name: String
    }

    @Test("Fields are found in whatever order they stand")
    func order() throws {
        let expected = Book(title: "t", pages: 3, author: Author(name: "n"), tags: ["x"])
        #expect(try decode(#"{"title":"t","pages":3,"author":{"name":"n"},"tags":["x"]}"#) == expected)
        #expect(try decode(#"{"tags":["x"],"author":{"more":1,"name":"n"},"pages":3,"title":"t"}"#) == expected)
    }

    @Test("An optional is nil for null and for an absent field")
    func optionals() throws {
        #expect(try decode(#"{"title":"t"}"#) == Book(title: "t"))
        #expect(try decode(#"{"title":"t","pages":null,"author":null,"tags":null}"#) == Book(title: "t"))
    }

    @Test("Fields are found in objects of many fields")
    func manyFields() throws {
        let members = (0..<1000).map { "\"field\($0)\":\($0)" }.joined(separator: ",")
        let decoded = try decode("{\(members)}", as: [String: Int].self)
        #expect(decoded.count == 1000)
        #expect(decoded["field777"] == 777)
        #expect(try response("{\(members)}")["field999"]?.int == 999)
        #expect(try response("{\(members)}")["field1000"] == nil)
    }

    @Test("Names that only look alike are different names")
    func canonicalEquivalence() throws {
        let both = try response(#"{"\u00e9": 1, "e\u0301": 2}"#)
        #expect(both["\u{E9}"]?.int == 1)
        #expect(both["e\u{301}"]?.int == 2)
    }

    @Test("Dictionaries by text and by number are read")
    func dictionaries() throws {
        #expect(
            try decode(#"{"a":{"name":"x"},"b":{"name":"y"}}"#) == ["a": Author(name: "x"), "b": Author(name: "y")])
        #expect(try decode(#"{"1":"x","2":"y"}"#) == [1: "x", 2: "y"])
    }

    private enum Status: String, Decodable {
        case open = "OPEN"
        case closed = "CLOSED"
    }

    private enum Choice: Decodable, Equatable {
        case named(String)
        case pair(left: Int, right: Int)
        case none
    }

    @Test("Enumerations are read by raw value and by case")
    func enumerations() throws {
        #expect(try decode(#"["OPEN","CLOSED"]"#) == [Status.open, .closed])
        #expect(try decode(#"{"named":{"_0":"x"}}"#) == Choice.named("x"))
        #expect(try decode(#"{"pair":{"left":1,"right":2}}"#) == Choice.pair(left: 1, right: 2))
        #expect(try decode(#"{"none":{}}"#) == Choice.none)
    }

    @Test("An unknown raw value is an error at its place")
    func unknownRawValue() throws {
        let error = #expect(throws: DecodingError.self) { try decode(#"["OPEN","AJAR"]"#, as: [Status].self) }
        #expect(error?.path == ["1"])
    }

    private class Animal: Decodable {
        var name: String
        init(name: String) { self.name = name }
    }

    private final class Dog: Animal {
        var barks: Bool
        private enum Keys: String, CodingKey { case barks, base }

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            barks = try container.decode(Bool.self, forKey: .barks)
            let base =
                container.contains(.base)
                ? try container.superDecoder(forKey: .base) : try container.superDecoder()
            try super.init(from: base)
        }
    }

    @Test("A superclass is read under super, or under a key of its own")
    func superclasses() throws {
        #expect(try decode(#"{"barks":true,"super":{"name":"Rex"}}"#, as: Dog.self).name == "Rex")
        let dog = try decode(#"{"base":{"name":"Rex"},"barks":true}"#, as: Dog.self)
        #expect(dog.barks && dog.name == "Rex")
    }

    @Test("A superclass that is absent is null at the path super")
    func absentSuperclass() throws {
        let error = #expect(throws: DecodingError.self) { try decode(#"{"barks":true}"#, as: Dog.self) }
        #expect(error?.path == ["super"])
    }

    private struct Nested: Decodable {
        var found: [String] = []
        private enum Keys: String, CodingKey { case outer, inner, list }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            let outer = try container.nestedContainer(keyedBy: Keys.self, forKey: .outer)
            found.append(try outer.decode(String.self, forKey: .inner))
            var list = try container.nestedUnkeyedContainer(forKey: .list)
            found.append("\(list.count ?? -1)")
            var first = try list.nestedUnkeyedContainer()
            while !first.isAtEnd { found.append("\(try first.decode(Int.self))") }
            let second = try list.nestedContainer(keyedBy: Keys.self)
            found.append(second.codingPath.map(\.stringValue).joined(separator: "/"))
            found.append(try second.decode(String.self, forKey: .inner))
            #expect(try list.decodeNil())
            #expect(try !list.decodeNil())
            found.append(try String(from: list.superDecoder()))
            #expect(list.isAtEnd)
            #expect(list.currentIndex == 4)
        }
    }

    @Test("Containers inside containers are read by hand")
    func nestedContainers() throws {
        let json = #"{"outer":{"inner":"a"},"list":[[1,2],{"inner":"b"},null,"c"]}"#
        #expect(try decode(json, as: Nested.self).found == ["a", "4", "1", "2", "list/Index 1", "b", "c"])
    }

    @Test("A decoder may be kept and used after others")
    func keptDecoder() throws {
        struct Kept: Decodable {
            let decoder: any Decoder
            init(from decoder: any Decoder) throws { self.decoder = decoder }
        }
        let kept = try decode(#"[{"name":"a"},{"name":"b"}]"#, as: [Kept].self)
        #expect(try kept.map { try Author(from: $0.decoder) } == [Author(name: "a"), Author(name: "b")])
        #expect(kept[1].decoder.codingPath.map(\.intValue) == [1])
    }

    @Test("Entries of userInfo reach the types")
    func userInfo() throws {
        struct Asking: Decodable {
            let answer: Int?
            init(from decoder: any Decoder) throws {
                answer = CodingUserInfoKey(rawValue: "key").flatMap { decoder.userInfo[$0] as? Int }
            }
        }
        let key = try #require(CodingUserInfoKey(rawValue: "key"))
        #expect(try decode("{}", as: Asking.self, options: .init(userInfo: [key: 42])).answer == 42)
    }

    @Test("A part of a response is decoded by itself")
    func parts() throws {
        let value = try #require(try response(#"{"a":[{"name":"x"}]}"#)[ResponsePath([.field("a"), .index(0)])])
        #expect(try value.decode(Author.self) == Author(name: "x"))
        #expect(try response("{}")[ResponsePath([.field("a"), .index(0)])] == nil)
        #expect(try response("{\"a\":1}")[ResponsePath([])]?.kind == .object)
    }
}

@Suite("Decoding Foundation's types from a response")
struct FoundationDecodingTests {
    private let instant = Date(timeIntervalSince1970: 1_600_000_000)

    @Test("Dates are read as the option says")
    func dates() throws {
        #expect(try decode("\"2020-09-13T12:26:40Z\"") == instant)
        #expect(try decode("\"2020-09-13T14:26:40+02:00\"") == instant)
        #expect(try decode("\"2020-09-13T12:26:40.500Z\"") == instant + 0.5)
        #expect(try decode("1600000000", options: .init(dates: .secondsSince1970)) == instant)
        let reference = instant.timeIntervalSinceReferenceDate
        #expect(try decode("\(reference)", options: .init(dates: .deferredToDate)) == instant)
        let custom = Response.DecodingOptions(
            dates: .custom { decoder in
                Date(timeIntervalSince1970: Double(try String(from: decoder)) ?? 0)
            })
        #expect(try decode("[\"1600000000\"]", options: custom) == [instant])
    }

    @Test("A date in seconds keeps its fraction, and a closure's own error is what decoding throws")
    func datesOfPrograms() throws {
        #expect(try decode("1600000000.5", options: .init(dates: .secondsSince1970)) == instant + 0.5)
        struct Odd: Error {}
        let refusing = Response.DecodingOptions(dates: .custom { _ in throw Odd() })
        #expect(throws: Odd.self) { try decode("{\"a\":[1]}", as: [String: [Date]].self, options: refusing) }
    }

    @Test("A date that is none is an error at its place")
    func badDate() throws {
        let error = #expect(throws: DecodingError.self) { try decode(#"{"a":"yesterday"}"#, as: [String: Date].self) }
        #expect(error?.path == ["a"])
    }

    @Test("URLs, UUIDs, data and decimals are read as JSON's decoder reads them")
    func singleValues() throws {
        #expect(try decode("\"https://example.org/a?b\"") == URL(string: "https://example.org/a?b"))
        let uuid = UUID()
        #expect(try decode("\"\(uuid.uuidString)\"") == uuid)
        #expect(try decode("\"AQID\"") == Data([1, 2, 3]))
        #expect(try decode("[1,2,3]") == Data([1, 2, 3]))
        #expect(try decode("12.30") == Decimal(string: "12.3"))
        #expect(try decode("\"12.30\"") == Decimal(string: "12.3"))
        #expect(try decode("[0.12345678901234567890123]") == [Decimal(string: "0.12345678901234567890123")])
    }

    @Test(
        "A decimal that is written with an exponent is read exactly",
        arguments: [("15e-1", "1.5"), ("-25e1", "-250"), ("12345678901234567890123e-22", "1.2345678901234567890123")])
    func decimalWithExponent(_ written: String, _ plain: String) throws {
        let decimal = try #require(Decimal(string: plain))
        #expect(try decode("\"\(written)\"", as: Decimal.self) == decimal)
        #expect(try decode("[\(written)]", as: [Decimal].self) == [decimal])
    }

    @Test(
        "A text that is no decimal is refused", arguments: ["\"\"", "\"1 apple\"", "1e400", "true", "\"0x10\"", "{}"])
    func badDecimal(_ json: String) throws {
        #expect(throws: DecodingError.self) { try decode(json, as: Decimal.self) }
    }

    @Test("Text that is no base64, no URL and no UUID is refused")
    func badText() throws {
        #expect(throws: DecodingError.self) { try decode("\"*\"", as: Data.self) }
        #expect(throws: DecodingError.self) { try decode("\"\"", as: URL.self) }
        #expect(throws: DecodingError.self) { try decode("\"1234\"", as: UUID.self) }
    }
}

@Suite("Why a response cannot be decoded")
struct DecodingErrorTests {
    @Test(
        "Numbers that do not fit are corrupted data",
        arguments: [
            "256", "-1", "1.5", "18446744073709551616", "1e400",
        ])
    func numbers(_ text: String) throws {
        let error = #expect(throws: DecodingError.self) {
            try decode("{\"a\":[0,\(text)]}", as: [String: [UInt8]].self)
        }
        guard case .dataCorrupted(let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["a", "Index 1"])
    }

    @Test(
        "A float with more digits than a double keeps is the nearest double",
        arguments: [
            "0.10000000000000001", "3.141592653589793238462643383279", "-0.30000000000000004441", "1e-400",
            "18446744073709551615.5",
        ])
    func manyDigits(_ text: String) throws {
        let nearest = try #require(Double(text))
        #expect(try decode("{\"a\":\(text)}", as: [String: Double].self) == ["a": nearest])
        #expect(try decode("[\(text)]", as: [Float].self) == [Float(nearest)])
        #expect(try decode(text, as: Double.self) == nearest)
        #expect(throws: DecodingError.self) { try decode("1e400", as: Double.self) }
    }

    @Test("An integer that a double does not keep is corrupted data")
    func inexactDouble() throws {
        #expect(try decode("9007199254740992", as: Double.self) == 9_007_199_254_740_992)
        #expect(throws: DecodingError.self) { try decode("9007199254740993", as: Double.self) }
        #expect(throws: DecodingError.self) { try decode("1e300", as: Float.self) }
    }

    @Test("Another kind of value is a type mismatch", arguments: ["true", "1", "[]", "{}"])
    func mismatch(_ text: String) throws {
        let error = #expect(throws: DecodingError.self) { try decode("{\"a\":\(text)}", as: [String: String].self) }
        guard case .typeMismatch(_, let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["a"])
    }

    private struct Item: Decodable { var name: String }

    @Test("A field that is not there is a missing key, and null a missing value")
    func missing() throws {
        let absent = #expect(throws: DecodingError.self) {
            try decode(#"{"items":[{"name":"a"},{}]}"#, as: [String: [Item]].self)
        }
        guard case .keyNotFound(let key, let context)? = absent else {
            Issue.record("\(String(describing: absent))")
            return
        }
        #expect(key.stringValue == "name")
        #expect(context.codingPath.map(\.stringValue) == ["items", "Index 1"])
        let null = #expect(throws: DecodingError.self) { try decode(#"[{"name":null}]"#, as: [Item].self) }
        guard case .valueNotFound(_, let context)? = null else {
            Issue.record("\(String(describing: null))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["Index 0", "name"])
    }

    private struct NullSeeker: Decodable {
        enum Key: String, CodingKey { case a, b, c }
        var found: [Bool?] = []
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            for key in [Key.a, .b, .c] { found.append(try? container.decodeNil(forKey: key)) }
        }
    }

    @Test("Whether a field is null can be asked of each that is there")
    func askedForNull() throws {
        #expect(try decode(#"{"a":null,"b":0}"#, as: NullSeeker.self).found == [true, false, nil])
    }

    @Test("A number that is larger than any double has no double, and its text")
    func greatNumbers() throws {
        let data = try #require(try Response(json: Array("[1e400,-1e400,12345678901234567890123]".utf8)).data)
        #expect(data[0]?.double == nil)
        #expect(data[1]?.double == nil)
        #expect(data[2]?.double == Double("12345678901234567890123"))
        #expect(data[0]?.number == "1e400")
    }

    @Test("An object where a list should be, and the reverse, is a type mismatch")
    func containers() throws {
        #expect(throws: DecodingError.self) { try decode("{}", as: [Int].self) }
        #expect(throws: DecodingError.self) { try decode("[]", as: [String: Int].self) }
        #expect(throws: DecodingError.self) { try decode("null", as: Item.self) }
        #expect(throws: DecodingError.self) { try decode("3", as: [Int].self) }
    }

    @Test("Reading past the end of a list is an error and stays one")
    func pastEnd() throws {
        struct Two: Decodable {
            init(from decoder: any Decoder) throws {
                var container = try decoder.unkeyedContainer()
                _ = try container.decode(Int.self)
                #expect(throws: DecodingError.self) { try container.decode(Int.self) }
                #expect(throws: DecodingError.self) { try container.decodeNil() }
                #expect(throws: DecodingError.self) { try container.nestedUnkeyedContainer() }
                #expect(container.currentIndex == 1)
            }
        }
        _ = try decode("[1]", as: Two.self)
    }

    @Test("An element that fails stays the current one")
    func failedElement() throws {
        struct Lenient: Decodable {
            var numbers: [Int] = []
            init(from decoder: any Decoder) throws {
                var container = try decoder.unkeyedContainer()
                while !container.isAtEnd {
                    if let number = try? container.decode(Int.self) {
                        numbers.append(number)
                    } else {
                        _ = try container.decode(String.self)
                    }
                }
            }
        }
        #expect(try decode(#"[1,"a",2]"#, as: Lenient.self).numbers == [1, 2])
    }
}

extension DecodingError {
    fileprivate var path: [String]? {
        switch self {
        case .dataCorrupted(let context), .keyNotFound(_, let context), .typeMismatch(_, let context),
            .valueNotFound(_, let context):
            context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
        @unknown default: nil
        }
    }
}
