import LarderRecords
import Testing

@Suite("Equality of responses")
struct ResponseEqualityTests {
    private func response(_ json: String) throws -> Response { try Response(json: Array(json.utf8)) }

    @Test("The order of fields does not count")
    func fieldOrder() throws {
        let left = try response(#"{"a":1,"b":[{"c":2,"d":3}]}"#)
        let right = try response(#"{"b":[{"d":3,"c":2}],"a":1}"#)
        #expect(left == right)
        #expect(left.hashValue == right.hashValue)
        #expect(left["b"] == right["b"])
    }

    @Test(
        "Different values are different",
        arguments: [
            ("1", "1.0"), ("1", "\"1\""), ("null", "{}"), ("[]", "{}"), ("[1,2]", "[2,1]"), ("{\"a\":null}", "{}"),
            ("{\"a\":1}", "{\"b\":1}"), ("{\"a\":1}", "{\"a\":1,\"b\":1}"), ("true", "false"), ("\"a\"", "\"A\""),
            ("\"\\u00e9\"", "\"e\\u0301\""), ("{\"\\u00e9\":1}", "{\"e\\u0301\":1}"), ("[[]]", "[[],[]]"),
        ])
    func different(_ left: String, _ right: String) throws {
        #expect(try response(left) != response(right))
        #expect(try response(right) != response(left))
        #expect(try response(left) == response(left))
        #expect(try response(left).digest != response(right).digest)
        #expect(try response(left).digest == response(left).digest)
    }

    @Test("Zero equals minus zero, and their hashes too")
    func zero() throws {
        #expect(try response("0.0") == response("-0.0"))
        #expect(try response("0.0").hashValue == response("-0.0").hashValue)
    }

    @Test("Equality is symmetric, and equal values have equal hashes", arguments: 0..<100 as Range<UInt64>)
    func laws(seed: UInt64) throws {
        var random = RandomJSON(seed: seed)
        let texts = (0..<12).map { _ in random.text(depth: 2) }
        let responses = try texts.map(response)
        for left in responses {
            for right in responses {
                #expect((left == right) == (right == left), "seed \(seed)")
                if left == right { #expect(left.hashValue == right.hashValue, "seed \(seed)") }
                #expect((left == right) == (left.digest == right.digest), "seed \(seed)")
                // Canonical JSON for one shape of fields: what is written alike is equal.
                if left.json == right.json { #expect(left == right, "seed \(seed)") }
            }
        }
    }
}
