import AsyncHTTPClient
import Foundation
import Larder
import LarderHTTP
import LarderURLSession
import NIOCore
import Testing

@Suite("The server's answer", .timeLimit(.minutes(10)))
struct AnswerTests {
    @Test(
        "A body of a type that can hold a GraphQL response is the answer, unread",
        arguments: [
            "application/json", "application/graphql-response+json", "Application/JSON; charset=UTF-8",
            "application/graphql-response+json;charset=\"utf-8\"", "application/json; charset=us-ascii",
            "application/graphql+json;charset=utf8",
        ]
    )
    func returnsBodies(type: String) async throws {
        try await withServer { _ in
            .json("{ not read", type: type)
        } _: { _, transport in
            let answer = try await transport.send(.query(), within: .ample)
            #expect(answer == GraphQLAnswer(body: Array("{ not read".utf8), status: 200))
        }
    }

    @Test(
        "Success with another content type is unusable, and its beginning is in the error",
        arguments: ["text/html", "application/json; charset=iso-8859-1", "multipart/mixed; boundary=x"]
    )
    func refusesOtherTypes(type: String) async throws {
        let page = "<html>" + String(repeating: "x", count: 5_000)
        try await withServer { _ in
            .json(page, type: type)
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .unusableAnswer)
            #expect(error.status == 200)
            #expect(error.body == Array(page.utf8.prefix(1_024)))
        }
    }

    @Test("Without a content type, a JSON object is an answer and anything else is not")
    func looksWhereNoTypeIsGiven() async throws {
        try await withServer { request in
            .json(request.number == 0 ? #" {"data":null}"# : "hello", type: nil)
        } _: { _, transport in
            try await expect(#" {"data":null}"#, from: transport, for: .query())
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .unusableAnswer)
        }
    }

    @Test("The age and the maximum age of an answer come from the server's headers")
    func ages() async throws {
        try await withServer { _ in
            .json("{}", headers: ["Cache-Control": "private, max-age=60", "Age": "12"])
        } _: { _, transport in
            let answer = try await transport.send(.query(), within: .ample)
            #expect(answer.age == .seconds(12))
            #expect(answer.maxAge == .seconds(60))
        }
    }

    @Test("No content is unusable")
    func refusesNoContent() async throws {
        try await withServer { _ in
            .json("", status: .ok, type: nil)
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .unusableAnswer)
        }
    }

    @Test(
        "A GraphQL response is an answer whatever its status",
        arguments: [400, 401, 403, 422, 429, 500, 503],
        [
            #"{"errors":[{"message":"no"}]}"#, #"{"data":null,"errors":[{"message":"no"}]}"#, #"{"data":{"a":1}}"#,
            #"{"errors":[{"message":"no","extensions":{"code":7}}]}"#,
        ]
    )
    func returnsBodiesOfErrors(status: Int, body: String) async throws {
        try await withServer { _ in
            .json(body, status: .init(statusCode: status), headers: ["Retry-After": "3"])
        } _: { _, transport in
            let answer = try await transport.send(.query(), within: .ample)
            #expect(answer == GraphQLAnswer(body: Array(body.utf8), status: status, retryAfter: .seconds(3)))
        }
    }

    @Test(
        "A status of failure without a GraphQL response is an error with status and body",
        arguments: [
            "", "Bad gateway", "[]", "null", #"{"message":"no"}"#, #"{"errors":"no"}"#, #"{"errors":[]}"#,
            #"{"errors":["no"]}"#, #"{"data":"#,
        ]
    )
    func reportsStatus(body: String) async throws {
        try await withServer { _ in
            .json(body, status: .badGateway)
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .status)
            #expect(error.status == 502)
            #expect(error.retryAfter == nil)
            #expect(error.body == Array(body.utf8))
        }
    }

    @Test("Retry-After is read in seconds and as a date, against the server's own clock")
    func readsRetryAfter() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let cases: [(field: String, expected: Duration?)] = [
            ("120", .seconds(120)), ("0", .zero), ("Sun, 06 Nov 1994 08:50:07 GMT", .seconds(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", .seconds(30)), ("Sun Nov  6 08:50:07 1994", .seconds(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", .zero), ("Tue, 07 Mar 1995 08:49:37 GMT", .seconds(121 * 86_400)),
            ("soon", nil), ("-1", nil), ("1.5", nil), ("Sun, 06 Foo 1994 08:50:07 GMT", nil),
            ("Sun, 06 Nov 1994 25:50:07 GMT", nil), ("99999999999999999999999", .seconds(3_162_240_000)),
        ]
        for (field, expected) in cases {
            try await withServer { _ in
                .json("", status: .serviceUnavailable, headers: ["Retry-After": field, "Date": date])
            } _: { _, transport in
                let error = try await transportError { try await transport.send(.query(), within: .ample) }
                #expect(error.status == 503)
                #expect(error.retryAfter == expected, "\(field)")
            }
        }
    }

    @Test(
        "A year of two digits is one of the century around 2000",
        arguments: [
            ("Friday, 01-Jan-27", 1_798_761_600), ("Tuesday, 31-Dec-69", 3_155_673_600), ("Thursday, 01-Jan-70", 0),
        ])
    func readsShortYears(date: String, seconds: Int) {
        #expect(HTTPDate.secondsSince1970(date + " 00:00:00 GMT") == seconds)
    }

    @Test("A date of another zone than HTTP's is none")
    func zone() {
        #expect(HTTPDate.secondsSince1970("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777)
        #expect(HTTPDate.secondsSince1970("Sun, 06 Nov 1994 08:49:37 PST") == nil)
    }

    @Test("Without a date of the server's, Retry-After is held against the clock here")
    func readsRetryAfterByClock() async throws {
        let options = options { $0.wallClock = { Date(timeIntervalSince1970: 951_782_400) } }
        try await withServer(options: options) { _ in
            .json("", status: .tooManyRequests, headers: ["Retry-After": "Tue, 29 Feb 2000 00:01:00 GMT"])
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.retryAfter == .seconds(60))
        }
    }

    @Test("An answer longer than allowed is given up, whether it says its length or not")
    func limitsSize() async throws {
        let options = options { $0.maximumAnswerSize = 2_000 }
        for chunked in [false, true] {
            try await withServer(options: options) { request in
                let body = #"{"data":""# + String(repeating: "x", count: request.number == 0 ? 1_989 : 1_990) + #""}"#
                return .json(body, headers: chunked ? ["Transfer-Encoding": "chunked"] : [:])
            } _: { _, transport in
                let whole = try await transport.send(.query(), within: .ample)
                #expect(whole.body.count == 2_000)
                let error = try await transportError { try await transport.send(.query(), within: .ample) }
                #expect(error.code == .unusableAnswer)
                #expect(error.body.count == 1_024)
            }
        }
    }

    @Test("Every transport takes a response of up to 64 MiB, unless the program says otherwise")
    func standardLimit() {
        #expect(HTTPTransport.Options().maximumAnswerSize == 64 << 20)
        #expect(URLSessionTransport.Options().maximumAnswerSize == 64 << 20)
    }

    @Test("A compressed answer arrives decompressed, and one that swells beyond the limit is given up")
    func decompresses() async throws {
        // {"data":"aaaa…"} with 100,000 a, as gzip wrote it.
        let packed = try #require(Data(base64Encoded: Self.hundredThousandInGzip))
        let script: ScriptedServer.Script = { request in
            #expect(request.headers["Accept-Encoding"] == ["deflate, gzip"])
            return Reply(
                headers: ["Content-Type": "application/json", "Content-Encoding": "gzip"], body: Array(packed)
            )
        }
        try await withServer(script) { _, transport in
            let expected = #"{"data":""# + String(repeating: "a", count: 100_000) + #""}"#
            try await expect(expected, from: transport, for: .query())
        }
        try await withServer(options: options { $0.maximumAnswerSize = 50_000 }, script) { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .unusableAnswer)
        }
    }

    @Test("A redirect is not followed, and the error says where it points", arguments: [301, 302, 303, 307, 308])
    func doesNotFollowRedirects(status: Int) async throws {
        try await withServer { _ in
            .json("", status: .init(statusCode: status), headers: ["Location": "http://elsewhere.invalid/graphql"])
        } _: { server, transport in
            let error = try await transportError { try await transport.send(.mutation(), within: .ample) }
            #expect(error.code == .status)
            #expect(error.status == status)
            #expect(error.message.contains("http://elsewhere.invalid/graphql"))
            #expect(server.requests.count == 1)
        }
    }

    @Test("The error of a redirect says when the server asks to come back")
    func keepsRetryAfterOfRedirect() async throws {
        try await withServer { _ in
            .json(
                "", status: .temporaryRedirect,
                headers: ["Location": "http://elsewhere.invalid/graphql", "Retry-After": "3"])
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .status && error.status == 307)
            #expect(error.retryAfter == .seconds(3))
        }
    }

    @Test("The answer of a client that followed a redirect is refused")
    func refusesFollowedRedirects() async throws {
        try await ScriptedServer.run { request in
            request.uri == "/graphql"
                ? .json("", status: .found, headers: ["Location": "/other"]) : .json(#"{"data":null}"#)
        } _: { server in
            try await HTTPClient.withHTTPClient { client in
                let transport = HTTPTransport(endpoint: server.url, client: client)
                let error = try await transportError { try await transport.send(.query(), within: .ample) }
                #expect(error.code == .status)
                #expect(error.status == 302)
            }
        }
    }

    private static let hundredThousandInGzip = """
        H4sIAAAAAAACA+3BMQ0AIBAEMC8nAzeXIIGN4P1tMLS92T3NSgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIBv5Q38Hy97q4YBAA==
        """
}
