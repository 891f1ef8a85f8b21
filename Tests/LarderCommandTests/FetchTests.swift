import Foundation
import Larder
import LarderCommandLine
import LarderRecords
import LarderTestSupport
import RecipeServer
import Testing

@testable import LarderCommand

@Suite("fetch", .timeLimit(.minutes(10)))
struct FetchTests {
    @Test("The server's answer is printed, stored, and answered without the server")
    func fetches() async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            let server = try await RecipeServer.start()
            let options = try [
                "--schema", fixture.write(RecipeServer.schema, to: "recipes.graphqls"), "--operation",
                fixture.write("query Q { recipe(id: 2) { __typename id title } }", to: "q.graphql"),
            ]
            let token = try fixture.write("hush\n", to: "token.txt")
            let fetched = try await fixture.larder(
                ["fetch", "--endpoint", server.url.absoluteString, "--header", "Authorization: @\(token)"] + options)
            #expect(fetched.status == 0, "\(fetched.errors)")
            #expect(fetched.output.hasPrefix(#"{"data":{"recipe":{"__typename":"Recipe","id":"2","title":""#))
            #expect(fetched.errors.hasPrefix("larder: 2 records created, 0 changed, 0 removed; the store has "))
            #expect(!fetched.errors.contains("hush"))
            let requests = server.requestCount
            try await server.stop()
            #expect(requests == 1)
            #expect(try await fixture.larder(["query"] + options).output == fetched.output)
        }
    }

    @Test(
        "Of a project's configuration the schema is taken that it names, however the file's name ends",
        arguments: [".graphqlconfig.yml", ".graphqlconfig.yaml", ".graphqlconfig"])
    func projectSchema(name: String) async throws {
        try await CommandFixture.withRecipes { fixture, server in
            let project = try fixture.write(
                "projects:\n  Recipes:\n    schemaPath: recipes.graphqls\n", to: name)
            let fetched = try await fixture.larder([
                "fetch", "--endpoint", server.url.absoluteString, "--schema", project, "--operation",
                fixture.write("query Q { recipe(id: 2) { __typename id title } }", to: "q.graphql"),
            ])
            #expect(fetched.status == 0, "\(fetched.errors)")
            #expect(fetched.output.hasPrefix(#"{"data":{"recipe":{"__typename":"Recipe","id":"2","title":""#))
        }
    }

    @Test(
        "A value that may be secret is taken from a file or the environment alone, and is not printed",
        arguments: [
            "Authorization: Bearer hush", "cookie:hush", "X-API-Key: hush", "Authorization: @/nowhere/hush",
            "X-Hasura-Admin-Secret: hush", "apikey: hush", "X-Anything: hush",
        ])
    func secretHeaders(header: String) async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder(
                ["fetch", "--endpoint", "http://127.0.0.1:1/", "--header", header]
                    + fixture.operation("One", variables: #"{"id":"1"}"#))
            #expect(outcome.status == 2)
            #expect(header.contains("@") || !outcome.errors.contains("hush"), "\(outcome.errors)")
        }
    }

    @Test("A header's value comes from the environment variable that --header-from names")
    func headerFromEnvironment() async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            let start = #"{"apiKey": "hush", "tokens": [], "region": "r", "pageSize": 2, "put": []}"#
            try await ForeignServer.run("appsync.py", start) { server in
                let arguments = [
                    "fetch", "--endpoint", server.url.absoluteString, "--policy", "networkOnly", "--store",
                    fixture.store, "--schema", try fixture.write("type Query { todos: [Int] }", to: "todos.graphqls"),
                    "--operation", try fixture.write("{ todos }", to: "todos.graphql"),
                ]
                func status(_ header: [String], _ variables: [String: String] = [:]) async throws -> String {
                    let outcome = try await LarderProcess.run(
                        arguments + header + ["--json"], environment: variables)
                    #expect(!outcome.errors.contains("hush") && !outcome.output.contains("hush"))
                    return "\(outcome.status) \(outcome.errors)"
                }
                // The server knows the key, and nothing else of the request.
                let header = ["--header-from", "x-api-key: THE_KEY"]
                let unknown = try await status([])
                #expect(unknown.hasPrefix("1 "))
                let wrong = try await status(header, ["THE_KEY": "wrong"])
                let right = try await status(header, ["THE_KEY": "hush\n"])
                #expect(wrong.hasPrefix("1 ") && right != wrong && right != unknown)
                #expect(try await status(header, ["THE_KEY": "hush"]) == right)
                #expect(try await status(header).hasPrefix("2 "))
                #expect(try await status(["--header-from", "hush"]).hasPrefix("2 "))
            }
        }
    }

    @Test("Under --json the response and what was written come together")
    func fetchesAsJSON() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder(
                ["fetch", "--endpoint", "http://127.0.0.1:1/", "--json", "--policy", "cacheFirst"]
                    + fixture.operation("One", variables: #"{"id":"1"}"#))
            #expect(
                outcome.outputWithoutSizes == #"""
                    {"larder":1,"command":"fetch","result":{"response":{"data":{"recipe":{"__typename":"Recipe",\#
                    "id":"1","title":"Soup","author":{"__typename":"Author","id":"7","name":"Ada"}}},\#
                    "isComplete":true,"missing":[],"errors":[],"age":0,"isExpired":false},\#
                    "written":{"records":{"created":0,"changed":0,"removed":0},\#
                    "bytes":{"before":0,"after":0}}}}

                    """#)
        }
    }

    @Test("A server that cannot be reached is an error, and a miss under cacheOnly is a miss")
    func reachesNobody() async throws {
        try await CommandFixture.withStore { fixture in
            let arguments =
                try ["fetch", "--endpoint", "http://127.0.0.1:1/", "--json"]
                + fixture.operation("One", variables: #"{"id":"9"}"#)
            let failed = try await fixture.larder(arguments)
            #expect(failed.status == 1)
            #expect(failed.errors.contains(#""code":"transport.unreachable""#))
            let missed = try await fixture.larder(arguments + ["--policy", "cacheOnly"])
            #expect(missed.status == 3)
        }
    }

    @Test("The server is asked for what is older than --max-age, unless --stale takes it")
    func ages() async throws {
        try await CommandFixture.withStore { fixture in
            let arguments =
                try ["fetch", "--endpoint", "http://127.0.0.1:1/"] + fixture.operation("One", variables: #"{"id":"1"}"#)
            #expect(try await fixture.larder(arguments + ["--max-age", "3600"]).status == 0)
            let old = try await fixture.larder(arguments + ["--max-age", "0", "--json"])
            #expect(old.status == 1 && old.errors.contains(#""code":"transport.unreachable""#), "\(old.errors)")
            let stale = try await fixture.larder(arguments + ["--max-age", "0", "--stale"])
            #expect(stale.status == 0 && stale.output.contains(#""title":"Soup""#), "\(stale.errors)")
        }
    }

    @Test("An answer that cannot be used is the server's failure, and none of the arguments")
    func blamesServer() async throws {
        for code in [RecordError.Code.responseMalformed, .tooLarge] {
            let failure = await #expect(throws: Failure.self) {
                try await ServerOptions.blamingServer {
                    throw LarderError(.init(rawValue: code.rawValue), "the answer", cause: RecordError(code, "it"))
                }
            }
            #expect(failure?.code == code.rawValue)
            #expect(failure?.exit == .failure)
        }
    }

    @Test(
        "Headers are sent without the spaces around them, colons of their own and all, and the program's choices count")
    func options() throws {
        func options(_ arguments: String...) throws -> FetchOptions {
            try RequestOptions.parse(["--endpoint", "http://h/"] + arguments).fetchOptions()
        }
        let plain = try options()
        #expect(plain.headers.isEmpty && plain.timeout == .seconds(30) && plain.errorPolicy == .fail)
        let chosen = try options(
            "--header", " Accept :  b:c ", "--header", "PRAGMA:", "--timeout", "86400", "--error-policy", "partial")
        #expect(chosen.headers.map(\.name) == ["Accept", "PRAGMA"] && chosen.headers.map(\.value) == ["b:c", ""])
        #expect(chosen.timeout == .seconds(86_400) && chosen.errorPolicy == .partial)
    }

    @Test("The headers of which the article says that their values are no secrets can be said as they are")
    func openHeaders() throws {
        let file = packageRoot.appending(path: "Sources/Larder/Larder.docc/CommandLine.md")
        let article = try String(contentsOf: file, encoding: .utf8)
        let list = try #require(article.firstMatch(of: /which hold no secret: ([^.]+)\. The value of any other/)).1
        let names = list.matches(of: /`([^`]+)`/).map { String($0.1) }
        #expect(names.count == 22)
        for name in names + names.map({ $0.lowercased() }) {
            let options = try RequestOptions.parse(["--endpoint", "http://h/", "--header", "\(name): x"])
            #expect(try options.fetchOptions().headers.map(\.name) == [name])
        }
    }

    @Test("A failure has the HTTP status with which the server refused")
    func httpStatus() async throws {
        try await CommandFixture.withRecipes { fixture, server in
            let outcome = try await fixture.larder([
                "fetch", "--json", "--endpoint", server.url.absoluteString + "/nowhere", "--schema",
                fixture.path("recipes.graphqls"), "--operation",
                fixture.write("query Q { recipe(id: 2) { id } }", to: "q.graphql"),
            ])
            #expect(outcome.status == 1 && outcome.output == "")
            #expect(outcome.errors.contains(#""exit":1,"status":404"#), "\(outcome.errors)")
        }
    }

    @Test(
        "Arguments that no request can be made of are refused",
        arguments: [
            ["--endpoint", "ftp://host/"], ["--endpoint", "nonsense"], ["--endpoint", "http://h/", "--timeout", "0"],
            ["--endpoint", "http://h/", "--timeout", "nan"], ["--endpoint", "http://h/", "--header", "hush"],
            ["--endpoint", "http://h/", "--policy", "sometimes"], ["--endpoint", "http://h/", "--timeout", "86401"],
            ["--endpoint", "http://h/", "--header", ": hush"], ["--endpoint", "http://h/", "--header", "   : hush"],
            ["--endpoint", "http://h/", "--error-policy", "never"], ["--endpoint", "http://h/", "--max-age", "-1"],
            ["--endpoint", "http://h/", "--max-age=-1"],
        ])
    func refuses(arguments: [String]) async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await fixture.larder(["fetch"] + arguments + fixture.operation("List"))
            #expect(outcome.status == 2)
            #expect(!outcome.errors.contains("hush"))
        }
    }

    @Test("The scheme of an endpoint may be in capitals")
    func capitals() async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await fixture.larder(
                ["fetch", "--json", "--endpoint", "HTTP://127.0.0.1:1/"] + fixture.operation("List"))
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains(#""code":"transport.unreachable""#), "\(outcome.errors)")
        }
    }

    @Test("Errors that come beside data are printed beside it, and none where there are none")
    func errorsBesideData() async throws {
        let schema = "type Query { a: Int b: Int }"
        for answer in [
            #"{"data":{"a":1,"b":null},"errors":[{"message":"no b","path":["b"]}]}"#, #"{"data":{"a":1,"b":2}}"#,
        ] {
            try await withTemporaryFolder { folder in
                let store = try Store.open(at: folder.appending(path: "store"), schemaText: [schema])
                let app = try store.partition(server: ScriptedServer { _ in answer })
                let response = try await app.fetch(
                    GraphQLOperation("{ a b }"), policy: .networkOnly, options: FetchOptions(errorPolicy: .partial))
                let envelope = String(decoding: response.envelope.bytes, as: UTF8.self)
                #expect(envelope == answer)
                try store.close()
            }
        }
    }

    @Test("JSON has the errors that come beside data")
    func errorsInJSON() async throws {
        let answer = #"{"data":{"a":1,"b":null},"errors":[{"message":"no b","path":["b"]}]}"#
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schemaText: ["type Query { a: Int b: Int }"])
            let app = try store.partition(server: ScriptedServer { _ in answer })
            let response = try await app.fetch(
                GraphQLOperation("{ a b }"), policy: .networkOnly, options: FetchOptions(errorPolicy: .partial))
            let json = String(decoding: response.result.bytes, as: UTF8.self)
            #expect(json.contains(#""errors":[{"message":"no b","path":["b"]}]"#), "\(json)")
            try store.close()
        }
    }

    @Test("Each header that --header-from names is sent")
    func headersFromVariables() throws {
        let options = try RequestOptions.parse([
            "--endpoint", "http://h/", "--header-from", "X-A: PATH", "--header-from", "X-B: PATH",
        ])
        #expect(try options.fetchOptions().headers.map(\.name) == ["X-A", "X-B"])
    }
}
