import Foundation
import Larder
import Testing

@testable import LarderAWS

/// Signatures that botocore and a computation by hand agree on.
@Suite("Signatures for AppSync")
struct AppSyncSignatureTests {
    private static let time = Date(timeIntervalSince1970: 1_770_091_506)
    private static let host = "https://abcdefghijklmnopqrstuvwxyz.appsync-api.us-east-1.amazonaws.com"
    private static let realTimeHeaders = [
        ("accept", "application/json, text/javascript"), ("content-encoding", "amz-1.0"),
        ("content-type", "application/json; charset=UTF-8"),
    ]

    private func signature(
        _ path: String, _ headers: [(String, String)], _ body: String, token: String? = "SESSIONTOKEN"
    ) throws -> String {
        let keys = Credentials.CloudCredentials(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            sessionToken: token, expires: nil)
        let url = try #require(URL(string: Self.host + path))
        let added = RequestSignature.headers(
            to: url, headers.map { .init(name: $0.0, value: $0.1) }, body: Array(body.utf8), keys, service: "appsync",
            region: "us-east-1", at: Self.time)
        let authorization = try #require(added.first { $0.name == "authorization" }?.value)
        return String(authorization.suffix(64))
    }

    @Test("A query over HTTP")
    func query() throws {
        #expect(
            try signature("/graphql", [("content-type", "application/json")], #"{"query":"{a}"}"#)
                == "491bfa2520f81922de5510f8e2c39d3b13b047dbf4debb3eb012c8ba7b536203")
    }

    @Test("A connection of the real-time endpoint, with a session token and without")
    func connection() throws {
        #expect(
            try signature("/graphql/connect", Self.realTimeHeaders, "{}")
                == "0e7ba4842cd7402babe521ede949213873fd9a253c6a14586d8ffc0a18dfdb11")
        #expect(
            try signature("/graphql/connect", Self.realTimeHeaders, "{}", token: nil)
                == "262a2d2da79241d97751982aadc0a20f83c1a7699a185ee9f96811d62d5ee0d9")
    }

    @Test("The start of a subscription, over exactly its bytes")
    func start() throws {
        #expect(
            try signature(
                "/graphql", Self.realTimeHeaders, #"{"query":"subscription{onCreateTodo{id}}","variables":{}}"#)
                == "868eeccbcd076d58dbd40397ee03283839a404fc5f4ff9ca3e299bffab8ba9d1")
    }

    @Test("A URL without a path is signed as that of the root")
    func root() throws { #expect(try signature("", [], "") == signature("/", [], "")) }

    @Test(
        "The region is in the host of AppSync's own URLs, in China too, and in no other",
        arguments: [
            ("https://abc.appsync-api.eu-west-1.amazonaws.com/graphql", "eu-west-1"),
            ("https://ABC.AppSync-API.ap-northeast-1.amazonaws.com/graphql", "ap-northeast-1"),
            ("https://abc.appsync-api.cn-north-1.amazonaws.com.cn/graphql", "cn-north-1"),
            ("https://api.example.com/graphql", nil),
            ("https://abc.appsync-api.eu-west-1.amazonaws.com.example.org/graphql", nil),
        ] as [(String, String?)])
    func region(_ text: String, _ region: String?) throws {
        #expect(AppSyncEndpoint.region(of: try #require(URL(string: text))) == region)
    }

    @Test("Kinds of errors are matched by what follows the data source's name")
    func errorTypes() {
        let kind = AppSyncErrorType.conditionalCheckFailed
        #expect(kind.matches("ConditionalCheckFailedException"))
        #expect(kind.matches("DynamoDB:ConditionalCheckFailedException"))
        #expect(kind.matches("com.amazonaws.dynamodb#ConditionalCheckFailedException"))
        #expect(kind.matches("Shop:com.amazonaws.dynamodb#ConditionalCheckFailedException"))
        #expect(!kind.matches("TransactionConditionalCheckFailedException"))
        #expect(!kind.matches(nil))
        // A program's own name may have such a mark itself.
        #expect(AppSyncErrorType(rawValue: "Shop:OutOfStock").matches("Shop:OutOfStock"))
        #expect(AppSyncErrorType(rawValue: "OutOfStock") ~= GraphQLError(message: "m", errorType: "Lambda:OutOfStock"))
    }
}
