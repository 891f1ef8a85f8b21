import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Passwords in URLs", .timeLimit(.minutes(10)))
struct PasswordTests {
    private static let urls = [
        "https://ada:hush@127.0.0.1:1/graphql", "https://hush@127.0.0.1:1/", "https://:hush@127.0.0.1:1/",
        "ada:hush@127.0.0.1/graphql", "ftp://ada:hush@127.0.0.1/", "https://ada:hu/sh@127.0.0.1/",
        "https://ada:hush@/", "https://ada:hush hush@[::1/", "https://ada:hush\u{9B}@127.0.0.1/",
        "https://127.0.0.1:1/graphql?key=hush", "127.0.0.1/graphql?key=hush",
    ]

    private func expectRefused(_ outcome: Outcome) {
        #expect(outcome.status == 2, "\(outcome.errors)")
        let told = outcome.output + outcome.errors
        #expect(!told.contains("hush") && !told.contains("hu/sh") && !told.contains("ada"), "\(told)")
    }

    @Test("fetch refuses an endpoint with a user or a password, tells neither, and makes no store", arguments: urls)
    func fetch(url: String) async throws {
        try await CommandFixture.withFiles { fixture in
            for more in [[], ["--json"]] {
                expectRefused(
                    try await fixture.larder(["fetch", "--endpoint", url] + more + fixture.operation("List")))
            }
            #expect(!FileManager.default.fileExists(atPath: fixture.store))
        }
    }

    @Test("So does clearing away what transfers have left", arguments: urls)
    func storage(url: String) async throws {
        try await TransferFixture.run { fixture in
            expectRefused(try await fixture.larder("transfers", "gc", "--region", "eu-west-1", "--endpoint", url))
        }
    }

    @Test("So does making an environment known", arguments: urls)
    func environment(url: String) async throws {
        try await CommandFixture.withFiles { fixture in
            expectRefused(
                try await LarderProcess.run(
                    program: "larder-migrate", ["env", "add", "a", "--url", url, "--store", fixture.store]))
        }
    }

    @Test("So does signing in", arguments: urls)
    func userPool(url: String) async throws {
        try await CommandFixture.withStore { fixture in
            expectRefused(try await fixture.larder("sign-out", "--endpoint", url))
        }
    }

    @Test("A URL with a query comes from a file, and messages about it tell nothing of the query")
    func fromFile() async throws {
        try await CommandFixture.withFiles { fixture in
            func fetch(_ text: String) async throws -> Outcome {
                let file = try fixture.write(text, to: "endpoint")
                return try await fixture.larder(["fetch", "--endpoint", "@\(file)"] + fixture.operation("List"))
            }
            let away = try await fetch("http://127.0.0.1:1/graphql?key=hush\n")
            #expect(away.status == 1 && away.errors.contains("No connection"), "\(away.errors)")
            #expect(!away.errors.contains("hush"))
            expectRefused(try await fetch("ftp://127.0.0.1:1/graphql?key=hush\n"))
            expectRefused(try await fetch("http://ada:hush@127.0.0.1:1/graphql?key=hush\n"))
            expectRefused(try await fetch(""))
            let missing = ["fetch", "--endpoint", "@\(fixture.path("none"))"]
            expectRefused(try await fixture.larder(missing + fixture.operation("List")))
        }
    }

    @Test(
        "A URL where none is expected is told of without its password and its query",
        arguments: [
            ("https://ada:hush@127.0.0.1/graphql", "https://…@127.0.0.1/graphql"),
            ("https://127.0.0.1/graphql?key=hush", "https://127.0.0.1/graphql?…"),
            ("https://127.0.0.1/graphql?key=a'hush", "https://127.0.0.1/graphql?…"),
        ])
    func unexpected(url: String, shown: String) async throws {
        try await CommandFixture.withFiles { fixture in
            for more in [[], ["--json"]] {
                let outcome = try await fixture.larder(["info", url] + more)
                #expect(outcome.errors.contains(shown), "\(outcome.errors)")
                expectRefused(outcome)
            }
        }
    }

    @Test("So is a URL in what a server reports beside its data")
    func reported() async throws {
        try await CommandFixture.withFiles { fixture in
            let response = #"{"data":{"recipes":[]},"errors":[{"message":"moved to https://ada:hush@h/x?key=hush"}]}"#
            let outcome = try await fixture.larder(
                ["ingest"] + fixture.operation("List", variables: "{}")
                    + ["--response", fixture.write(response, to: "response.json")])
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.errors.contains("moved to https://…@h/x?…"), "\(outcome.errors)")
            #expect(!outcome.errors.contains("hush"))
        }
    }

    @Test("In a message the user and the query are hidden, of each URL")
    func messages() {
        #expect(
            URLText.hidingSecrets(in: "GET https://a:b@h/x?y=p@q, then 'http://c@i' and //j/@, mail k@l")
                == "GET https://…@h/x?… then 'http://…@i' and //j/@, mail k@l")
        #expect(URLText.hidingSecrets(in: "no URL at all?") == "no URL at all?")
        #expect(
            URLText.hidingSecrets(in: "'http://h/a//b?c=d//e' and 'http://i?f=g'h', \"//j?k\"")
                == "'http://h/a//b?…' and 'http://i?…', \"//j?…\"")
        #expect(URLText.hidingUser(ofURL: "https://a:b/c@d@h/x") == "https://…@h/x")
        #expect(URLText.hidingUser(ofURL: "https://h/x") == "https://h/x")
    }

    @Test("An environment's description has no password, though the environment was never looked at")
    func description() throws {
        let url = try #require(URL(string: "https://ada:hush@h/graphql"))
        #expect("\(BackendEnvironment(name: "a", api: .init(url: url)))" == "a (https://…@h/graphql)")
    }

    @Test("A storage's URL may come from a file as well")
    func storageFromFile() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id, upload: "a-name"))
            let file = fixture.folder.appending(path: "endpoint")
            try Data("http://127.0.0.1:9\n".utf8).write(to: file)
            let outcome = try await fixture.larder(
                "transfers", "gc", "--write", "--json", "--region", "eu-west-1", "--endpoint", "@\(file.path)",
                environment: ["AWS_ACCESS_KEY_ID": "the-key", "AWS_SECRET_ACCESS_KEY": "the-secret"])
            #expect(outcome.status == 1 && outcome.output.contains("object.unreachable"), "\(outcome)")
        }
    }

    @Test("A user pool's URL may come from a file as well")
    func userPoolFromFile() async throws {
        try await CommandFixture.withStore { fixture in
            let file = try fixture.write("http://127.0.0.1:1/\n", to: "endpoint")
            let outcome = try await fixture.larder("sign-out", "--endpoint", "@\(file)", "--json")
            // The verb has read the file: it fails only because the store has no environment.
            #expect(outcome.status == 3 && outcome.errors.contains("larder.noEnvironment"), "\(outcome.errors)")
        }
    }
}
