import Foundation
import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("A response as Codable")
struct ResponseCodableTests {
    private func roundTrip(_ response: Response) throws -> Response {
        try JSONDecoder().decode(Response.self, from: JSONEncoder().encode(response))
    }

    @Test("Random data comes back equal", arguments: 0..<100 as Range<UInt64>)
    func randomData(seed: UInt64) throws {
        var random = RandomJSON(seed: seed)
        let response = try Response(json: Array(random.text().utf8))
        let again = try roundTrip(response)
        #expect(again == response, "seed \(seed)")
        #expect(again.json == response.json, "seed \(seed)")
    }

    @Test("Missing paths are the same in whatever order a cache came upon them")
    func missingInAnyOrder() throws {
        let (first, second) = (ResponsePath([.field("a")]), ResponsePath([.field("b")]))
        let left = Response(buffer: nil, missing: [first, second])
        #expect(left == Response(buffer: nil, missing: [second, first]))
        #expect(left.hashValue == Response(buffer: nil, missing: [second, first]).hashValue)
        #expect(left != Response(buffer: nil, missing: [second]))
    }

    @Test("Errors and missing paths come back equal")
    func errorsAndMissing() throws {
        let errors = [
            GraphQLError(message: "plain"),
            GraphQLError(
                message: "all", path: ResponsePath([.field("a"), .index(3)]),
                locations: [.init(line: 1, column: 2)],
                extensions: ["code": .string("X"), "n": .float(1), "big": .number("1e400")], errorType: "Throttled",
                errorInfo: ["after": 5], data: ["id": "1"]),
            GraphQLError(message: "no type of its own", path: ResponsePath([]), extensions: ["code": .string("X")]),
        ]
        let missing = [ResponsePath([.field("a"), .index(0), .field("b")]), ResponsePath([])]
        let response = Response(
            buffer: try Response(json: Array("{\"a\":1.0}".utf8)).buffer, errors: errors, missing: missing)
        let again = try roundTrip(response)
        #expect(again == response)
        #expect(again.errors == errors)
        #expect(again.missing == missing)
        #expect(!again.isComplete)
    }

    @Test("A response without data comes back without")
    func noData() throws {
        let again = try roundTrip(Response(buffer: nil, errors: [GraphQLError(message: "x")]))
        #expect(again.data == nil)
        #expect(again.errors.map(\.message) == ["x"])
        #expect(throws: DecodingError.self) { try again.decode([String: Int].self) }
    }

    @Test("The encoded form has the documented shape")
    func shape() throws {
        let response = Response(
            buffer: try Response(json: Array("{\"a\":1.0}".utf8)).buffer,
            missing: [ResponsePath([.field("b"), .index(1)])])
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(response), as: UTF8.self)
        #expect(text == #"{"data":"{\"a\":1.0}","missing":[["b",1]],"version":1}"#)
    }

    @Test(
        "Another version, and text that is no JSON, are refused",
        arguments: [
            #"{"version":2,"data":"{}"}"#, #"{"data":"{}"}"#, #"{"version":1,"data":"{"}"#,
            #"{"version":1,"errors":"{}"}"#, #"{"version":1,"errors":"["}"#, #"{"version":1,"missing":[[true]]}"#, "[]",
        ])
    func refused(_ text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Response.self, from: Data(text.utf8)) }
    }

    @Test("A value is encoded as the JSON it is")
    func encodedValue() throws {
        let text = #"{"a":[1,2.5,null,true,"x"],"big":12345678901234567890123,"o":{"p":{}}}"#
        let value = try #require(try Response(json: Array(text.utf8)).data)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(value), as: UTF8.self) == text)
    }

    @Test("A number that no type keeps is not encoded as another")
    func unencodableNumber() throws {
        let value = try #require(try Response(json: Array("[1e400]".utf8)).data)
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(value) }
    }
}

@Suite("Custom scalars and absent fields in a response")
struct OpaqueScalarTests {
    /// `{"a": <text>, "b": absent}`, with the text kept as a custom scalar's is.
    private func response(_ text: String) throws -> Response {
        var builder = ResponseBuilder(capacity: 0)
        let block = try builder.appendCells(2)
        let bytes = Array(text.utf8)
        let cell = try bytes.withUnsafeBytes { try builder.appendText(.json, $0) }
        builder.store(cell, at: block)
        builder.store(ResponseCell(.object, count: 0, payload: UInt64(block)), at: 0)
        return Response(buffer: builder.finish(shapes: ShapeTable([ObjectShape(["a", "b"])])))
    }

    private func plain(_ text: String) throws -> Response { try Response(json: Array("{\"a\":\(text)}".utf8)) }

    private struct Holder: Decodable, Equatable {
        struct Point: Decodable, Equatable { var x: Int, y: [Double] }
        var a: Point
        var b: String?
    }

    @Test("A custom scalar is decoded as what its text says")
    func decoded() throws {
        #expect(try response(#"{"x": 1, "y": [2.5]}"#).decode() == Holder(a: .init(x: 1, y: [2.5])))
        #expect(try response("[1, 2]").decode() == ["a": [1, 2]])
    }

    @Test("A custom scalar is decoded by itself as what its text says")
    func decodedAlone() throws {
        let value = try #require(try response(#"{"x": 1, "y": [2.5]}"#)["a"])
        #expect(value.kind == .json)
        #expect(try value.decode(Holder.Point.self) == Holder.Point(x: 1, y: [2.5]))
    }

    @Test("Dates inside a custom scalar are read as the options say")
    func dates() throws {
        let options = Response.DecodingOptions(dates: .secondsSince1970)
        let decoded = try response("[1600000000]").decode([String: [Date]].self, options: options)
        #expect(decoded == ["a": [Date(timeIntervalSince1970: 1_600_000_000)]])
    }

    @Test("An error inside a custom scalar has the whole path")
    func path() throws {
        let error = #expect(throws: DecodingError.self) {
            try response(#"{"x": 1, "y": ["z"]}"#).decode(Holder.self)
        }
        guard case .typeMismatch(_, let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["a", "y", "Index 0"])
    }

    @Test("A custom scalar with the same key twice is an error at its place")
    func duplicate() throws {
        let error = #expect(throws: DecodingError.self) {
            try response(#"{"x":1,"x":2}"#).decode([String: [String: Int]].self)
        }
        guard case .dataCorrupted(let context)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(context.codingPath.map(\.stringValue) == ["a"])
        #expect((context.underlyingError as? JSONError)?.reason == .duplicateKey)
    }

    @Test("An absent field is a missing key")
    func absent() throws {
        struct Both: Decodable { var a: [Int], b: String }
        let error = #expect(throws: DecodingError.self) { try response("[]").decode(Both.self) }
        guard case .keyNotFound(let key, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(key.stringValue == "b")
        #expect(try response("[]").decode([String: [Int]].self).keys.sorted() == ["a"])
        #expect(try response("[]").data?.names == ["a", "b"])
    }

    @Test(
        "A custom scalar equals the same data, however it is written",
        arguments: [
            (#"{"x":1,"y":[2]}"#, #"{ "y" : [ 2 ], "x" : 1 }"#), ("[1, 2]", "[1,2]"), (#"{"x":{}}"#, #"{"x":{ }}"#),
        ])
    func equality(_ left: String, _ right: String) throws {
        #expect(try response(left) == response(right))
        #expect(try response(left).hashValue == response(right).hashValue)
        #expect(try response(left) == plain(right))
        #expect(try plain(left) == response(right))
        #expect(try response(left).hashValue == plain(right).hashValue)
        #expect(try response(left) != plain("{\"x\":2}"))
    }

    @Test(
        "A custom scalar comes back from Codable, even one that JSON should not hold",
        arguments: [
            #"{"x":1}"#, #"{"x":1,"x":2}"#, #"[{"deep":{"x":1,"x":2}}]"#,
            String(repeating: "[", count: 512) + String(repeating: "]", count: 512),
        ])
    func codable(_ text: String) throws {
        let response = try response(text)
        let again = try JSONDecoder().decode(Response.self, from: JSONEncoder().encode(response))
        #expect(again == response)
        #expect(again.hashValue == response.hashValue)
        #expect(again.json == response.json)
    }

    @Test("A custom scalar is encoded as what its text says")
    func encoded() throws {
        let value = try #require(response("[1,{\"x\":null}]").data)
        #expect(String(decoding: try JSONEncoder().encode(value), as: UTF8.self) == #"{"a":[1,{"x":null}]}"#)
    }
}
