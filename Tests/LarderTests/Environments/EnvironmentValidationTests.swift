import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Environments as they are named and kept")
struct EnvironmentValidationTests {
    let api: BackendEnvironment.API

    init() throws { api = .init(url: try #require(URL(string: "https://api.example/graphql"))) }

    private func refusal(_ environment: BackendEnvironment) -> LarderError? {
        let error = #expect(throws: LarderError.self) { try environment.validate() }
        #expect(error?.code == .environment)
        return error
    }

    @Test("Names of letters, digits, hyphens, underscores and single dots are names")
    func names() throws {
        for name in ["a", "staging", "eu-west-1.v2", "7_x", String(repeating: "n", count: 64)] {
            try BackendEnvironment(name: name, api: api).validate()
        }
    }

    @Test("A store enters no environment that cannot be named, and makes nothing for it")
    func entered() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            let bad = BackendEnvironment(name: "../x", api: api)
            await expectCode(.environment) { _ = try await store.switch(to: bad) }
            await expectCode(.environment) { _ = try store.partition(of: bad) }
            #expect(try store.partitionIdentities().isEmpty && store.current() == nil)
            try store.close()
        }
    }

    @Test("A user whose id is empty is refused, and nothing is made for it")
    func emptyUser() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            let staging = BackendEnvironment(name: "staging", api: api)
            await expectCode(.environment) { _ = try await store.switch(to: staging, user: .user("")) }
            await expectCode(.environment) { _ = try store.partition(of: staging, user: .user("")) }
            #expect(try store.partitionIdentities().isEmpty && store.current() == nil)
            try store.close()
        }
    }

    @Test(
        "Path separators, dots that name folders, control characters, nothing and too much are no names",
        arguments: [
            "", "a/b", "a\\b", "..", ".", "a..b", ".a", "-a", "_a", "a b", " a", "a\n", "a\u{0}", "é", "a\u{202E}b",
            "\u{FF41}", "a:b", "a%2Fb", "😀", String(repeating: "n", count: 65), String(repeating: "é", count: 40),
        ])
    func badNames(_ name: String) throws {
        let error = refusal(BackendEnvironment(name: name, api: api))
        #expect(error?.message.contains("use ASCII letters, digits") == true)
        #expect(error?.message.unicodeScalars.allSatisfy { $0.value >= 0x20 } == true)
    }

    @Test(
        "A URL must be http or https, name a host, and hold no user, password or fragment",
        arguments: [
            "ftp://api.example", "/graphql", "api.example/graphql", "https://", "https:///graphql",
            "file:///etc/passwd",
            "https://me@api.example", "https://me:hush@api.example", "https://:hush@api.example",
            "https://api.example/#a",
            // Its user is no URL's, for want of a scheme.
            "me:hush@api.example/graphql",
        ])
    func urls(_ text: String) throws {
        let url = try #require(URL(string: text))
        let error = refusal(BackendEnvironment(name: "e", api: .init(url: url)))
        #expect(error?.message.contains("URL") == true)
        #expect(error?.message.contains("hush") == false)
    }

    @Test("An environment is described without the user and the password that its URL has")
    func described() throws {
        let url = try #require(URL(string: "https://ada:hush@api.example/graphql"))
        let text = "\(BackendEnvironment(name: "e", api: .init(url: url)))"
        #expect(text.hasPrefix("e (https://") && text.hasSuffix("@api.example/graphql)"), "\(text)")
        #expect(!text.contains("ada") && !text.contains("hush"), "\(text)")
    }

    @Test("A definition that contradicts itself, is empty or cannot be seen is refused, part by part")
    func parts() throws {
        typealias Environment = BackendEnvironment
        let own = Environment(name: "e", api: api)
        let changes: [(String, (inout Environment) -> Void)] = [
            ("region is empty", { $0.api.region = "" }),
            ("user pool's id is empty", { $0.userPool = .init(id: "", clientID: "c", region: "r") }),
            ("client id is empty", { $0.userPool = .init(id: "p", clientID: "", region: "r") }),
            ("user pool's region is empty", { $0.userPool = .init(id: "p", clientID: "c", region: "") }),
            ("not in the region", { $0.userPool = .init(id: "eu-west-1_A", clientID: "c", region: "eu-west-2") }),
            ("not in the region", { $0.identityPool = .init(id: "us-gov-east-1:0-0", region: "us-east-1") }),
            ("identity pool's id is empty", { $0.identityPool = .init(id: "", region: "us-east-1") }),
            ("bucket's name is empty", { $0.bucket = .init(name: "", region: "r") }),
            ("has a / in it", { $0.bucket = .init(name: "a/b", region: "r") }),
            ("bucket's region has white space", { $0.bucket = .init(name: "b", region: "eu-west-1 ") }),
            ("control character", { $0.userPool = .init(id: "p\n", clientID: "c", region: "r") }),
            ("API key is empty", { $0.apiKey = "" }),
            ("API key has white space or a control", { $0.apiKey = "da2-\u{200B}key" }),
            (
                "a scope of the sign-in pages has white space",
                { $0.hostedSignIn = .init(domain: "a.b", scopes: ["openid", "e mail"], signInRedirects: ["a://b"]) }
            ),
            (
                "domain of the sign-in pages is empty",
                { $0.hostedSignIn = .init(domain: "", signInRedirects: ["a://b"]) }
            ),
            (
                "where the sign-in pages lead has white space",
                { $0.hostedSignIn = .init(domain: "a.b", signInRedirects: ["a://b"], signOutRedirects: ["a://b "]) }
            ),
            ("identity pool's region is empty", { $0.identityPool = .init(id: "p", region: "") }),
            ("what it succeeds", { $0.predecessor = .environment("../old") }),
        ]
        for (expected, change) in changes {
            var environment = own
            change(&environment)
            #expect(refusal(environment)?.message.contains(expected) == true, "\(expected)")
        }
    }

    @Test("A client's secret that is empty or has white space is refused, and the message does not repeat it")
    func clientSecret() {
        for secret in ["", "hush hush", "hush\n"] {
            let error = refusal(BackendEnvironment(name: "e", api: api, clientSecret: secret))
            #expect(error?.message.contains("the client's secret") == true)
            #expect(error?.message.contains("hush") == false)
        }
    }

    @Test("The message about an API key that has white space or a control character does not repeat the key")
    func apiKey() {
        for key in ["da2-hush hush", "hush\n"] {
            let error = refusal(BackendEnvironment(name: "e", api: api, apiKey: key))
            #expect(error?.message.contains("the API key") == true)
            #expect(error?.message.contains("hush") == false)
        }
    }

    @Test("A URL of AppSync's is of its region, in whatever letters it is written")
    func capitals() throws {
        let url = try #require(URL(string: "https://ABC.AppSync-API.US-EAST-1.AmazonAWS.com/graphql"))
        let error = refusal(BackendEnvironment(name: "e", api: .init(url: url, region: "eu-west-1")))
        #expect(error?.message.contains("is not in the region \"eu-west-1\"") == true, "\(error?.message ?? "")")
        try BackendEnvironment(name: "e", api: .init(url: url, region: "us-east-1")).validate()
    }

    @Test("Ids that name no region contradict nothing")
    func otherProviders() throws {
        try BackendEnvironment(
            name: "e", api: .init(url: api.url, region: "eu-west-1"),
            userPool: .init(id: "my_pool", clientID: "c", region: "eu-west-1"),
            identityPool: .init(id: "realm:main", region: "eu-west-1"), bucket: .init(name: "b.c", region: "x"),
            predecessor: .unnamed
        ).validate()
    }

    @Test("A definition keeps all but the name and the API key, and comes back")
    func definition() throws {
        var full = try WrittenConfiguration.environment("staging")
        full.isProtected = true
        for predecessor in [nil, .unnamed, .environment("old")] as [BackendEnvironment.Predecessor?] {
            full.predecessor = predecessor
            var expected = full
            expected.apiKey = nil
            let back = try BackendEnvironment(definition: full.definition, name: "staging")
            #expect(back == expected)
            #expect(back.definition == full.definition)
            #expect(back.fingerprints == full.fingerprints)
        }
        let small = BackendEnvironment(name: "e", api: api, apiKey: "secret")
        #expect(String(decoding: small.definition, as: UTF8.self) == #"{"api":{"url":"https://api.example/graphql"}}"#)
        full.predecessor = .environment("old")
        #expect(
            String(decoding: full.definition, as: UTF8.self) == """
                {"api":{"region":"eu-west-1","url":"https://abc.appsync-api.eu-west-1.amazonaws.com/graphql"},\
                "bucket":{"name":"media","region":"eu-west-1"},\
                "identityPool":{"id":"eu-west-1:00000000-1111-2222-3333-444444444444","region":"eu-west-1"},\
                "protected":true,"succeeds":"old",\
                "userPool":{"clientID":"client","id":"eu-west-1_AbCdEf","region":"eu-west-1"}}
                """)
    }

    @Test("A damaged definition is an error that names the environment; one with more in it is read")
    func damagedDefinition() throws {
        for text in [
            "", "{}", "[]", #"{"api":{}}"#, #"{"api":{"url":7}}"#, #"{"api":{"url":"https://x"},"protected":1}"#,
        ] {
            let error = #expect(throws: LarderError.self) {
                try BackendEnvironment(definition: Array(text.utf8), name: "staging")
            }
            #expect(error?.code == .environment)
            #expect(error?.message.contains("\"staging\"") == true)
        }
        let later = #"{"api":{"url":"https://x","added":1},"added":{}}"#
        #expect(try BackendEnvironment(definition: Array(later.utf8), name: "e").api.url.host() == "x")
    }
}
