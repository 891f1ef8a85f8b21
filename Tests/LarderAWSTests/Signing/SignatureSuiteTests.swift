import Foundation
import Larder
import LarderAWS
import Testing

/// Cases of the `aws-sig-v4-test-suite` that AWS publishes for implementers, by their names. Those whose paths are
/// resolved are left out: S3's are not.
@Suite("The test suite of Signature Version 4")
struct SignatureSuiteTests {
    private static let signature = SignatureV4(
        credentials: Credentials.CloudCredentials(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", expires: nil),
        time: SigningTime(Date(timeIntervalSince1970: 1_440_938_160)), region: "us-east-1", service: "service")

    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var method = "GET"
        var path = "/"
        var query: [[String]] = []
        var headers: [[String]] = []
        var body = ""
        var signature: String

        var testDescription: String { name }
    }

    private static let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    static let cases = [
        Case(name: "get-vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Case(
            name: "get-vanilla-query-order-key-case", query: [["Param2", "value2"], ["Param1", "value1"]],
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Case(
            name: "get-vanilla-query-order-key", query: [["Param1", "value2"], ["Param1", "Value1"]],
            signature: "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"),
        Case(
            name: "get-vanilla-query-order-value", query: [["Param1", "value2"], ["Param1", "value1"]],
            signature: "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
        Case(
            name: "get-vanilla-query-unreserved", query: [[unreserved, unreserved]],
            signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
        Case(
            name: "get-vanilla-utf8-query", query: [["ሴ", "bar"]],
            signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Case(
            name: "get-unreserved", path: "/" + unreserved,
            signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Case(
            name: "get-utf8", path: "/ሴ",
            signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Case(
            name: "get-space", path: "/example space/",
            signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
        Case(
            name: "get-header-key-duplicate",
            headers: [["My-Header1", "value2"], ["My-Header1", "value2"], ["My-Header1", "value1"]],
            signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
        Case(
            name: "get-header-value-order",
            headers: ["value4", "value1", "value3", "value2"].map { ["My-Header1", $0] },
            signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
        Case(
            name: "get-header-value-trim", headers: [["My-Header1", " value1"], ["My-Header2", " \"a   b   c\""]],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Case(
            name: "post-header-key-sort", method: "POST", headers: [["My-Header1", "value1"]],
            signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
        Case(
            name: "post-header-value-case", method: "POST", headers: [["My-Header1", "VALUE1"]],
            signature: "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"),
        Case(
            name: "post-vanilla-empty-query-value", method: "POST", query: [["Param1", "value1"]],
            signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"),
        Case(
            name: "post-x-www-form-urlencoded", method: "POST",
            headers: [["Content-Type", "application/x-www-form-urlencoded"]], body: "Param1=value1",
            signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ]

    @Test("A request of the suite has its signature", arguments: cases)
    func signature(of example: Case) {
        let request = CanonicalRequest(
            method: example.method, path: URIEncoding.path(example.path), query: example.query.map { ($0[0], $0[1]) },
            headers: example.headers.map { ($0[0], $0[1]) }
                + [("Host", "example.amazonaws.com"), ("X-Amz-Date", Self.signature.time.stamp)],
            payloadHash: .of(example.body.utf8))
        #expect(Self.signature.signature(of: request) == example.signature)
    }

    @Test(
        "A time is written in UTC, whatever the year",
        arguments: [
            (0, "19700101T000000Z"), (951_782_399, "20000228T235959Z"), (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"), (1_440_938_160, "20150830T123600Z"), (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"), (1.9, "19700101T000001Z"), (-1e30, "19700101T000000Z"),
            (1e30, "99991231T235959Z"),
        ])
    func time(seconds: Double, stamp: String) {
        #expect(SigningTime(Date(timeIntervalSince1970: seconds)).stamp == stamp)
    }

    @Test("The parameters of a query are in the order of their encoded names and values")
    func queryOrder() {
        let text = CanonicalRequest.queryText([("a", "1"), ("a", "é"), ("é", "2")])
        #expect(text == "%C3%A9=2&a=%C3%A9&a=1")
    }

    @Test("Text out of a list is decoded, and what is not encoded so is refused")
    func decoding() {
        #expect(URIEncoding.decoded("a+b%2Bc%2f%F0%9F%8D%B2") == "a b+c/🍲")
        #expect(URIEncoding.decoded("a%2") == nil)
        #expect(URIEncoding.decoded("a%zz") == nil)
        #expect(URIEncoding.decoded("%FF") == nil)
    }
}
