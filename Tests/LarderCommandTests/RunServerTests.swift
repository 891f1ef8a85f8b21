import Foundation
import Larder
import LarderCommandLine
import LarderOperations
import LarderTestSupport
import RecipeServer
import Testing

@testable import LarderCommand

@Suite("What run tells of a server that takes nothing", .timeLimit(.minutes(10)))
struct RunServerTests {
    /// What `appsync.py` is told: it refuses every request without the key.
    private static let start = #"{"apiKey": "key", "tokens": [], "region": "r", "pageSize": 2, "put": []}"#

    /// Runs `body` with a store in which a mutation is queued in the lane `x`.
    private func withQueued(_ body: (CommandFixture) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            let schema = "type Query { n: Int } type Mutation { count: Int }"
            let queued = try await fixture.larder([
                "enqueue", "--lane", "x", "--json", "--schema", fixture.write(schema, to: "schema.graphqls"),
                "--operation", fixture.write("mutation { count }", to: "count.graphql"),
            ])
            #expect(queued.output.hasSuffix(#","lane":"x"}}"# + "\n"), "\(queued.output)\(queued.errors)")
            #expect(try await fixture.larder("mutations", "--json").output.contains(#""lane":"x""#))
            try await body(fixture)
            #expect(try await fixture.larder("mutations", "--state", "pending").output.contains(" 1 x "))
        }
    }

    @Test(
        "Where the server does not know the user, it says so and ends, and what waits stays queued",
        .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
    func unknownUser() async throws {
        try await withQueued { fixture in
            try await ForeignServer.run("appsync.py", Self.start) { server in
                let run = ["run", "--until-idle", "--auth", "api-key", "--endpoint", server.url.absoluteString]
                let outcome = try await LarderProcess.run(
                    run + ["--store", fixture.store], environment: ["LARDER_API_KEY": "another"])
                #expect(outcome.status == 1, "\(outcome.errors)")
                #expect(outcome.errors.contains("The server does not know the user, and what waits was not sent"))
            }
        }
    }

    @Test("Where no GraphQL server answers, it says so and asks again, and what waits stays queued")
    func noServer() async throws {
        try await withQueued { fixture in
            let server = try await RecipeServer.start()
            let outcome = try await fixture.larder(
                "run", "--until-idle", "--give-up-after", "2", "--endpoint", server.url.absoluteString + "/nowhere")
            try await server.stop()
            #expect(outcome.status == 1, "\(outcome.errors)")
            let told = "what answers at the endpoint is no GraphQL server; asking again after pauses"
            #expect(outcome.errors.contains(told), "\(outcome.errors)")
        }
    }

    @Test(
        "run sets a mutation aside whose conflict wants a resolver",
        .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
    func resolver() async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            let schema = "type Query { n: Int } type Mutation { rename: Thing } type Thing { id: ID! name: String }"
            let id: MutationID
            do {
                let store = try Store.open(at: URL(filePath: fixture.store), schemaText: [schema])
                let operation = GraphQLOperation("mutation { rename { id name } }")
                id = try await store.partition().enqueue(operation, options: .init(resolver: "merge")).id
                try store.close()
            }
            try await ForeignServer.run("appsync.py", Self.start) { server in
                let run = ["run", "--until-idle", "--auth", "api-key", "--endpoint", server.url.absoluteString]
                let outcome = try await LarderProcess.run(
                    run + ["--store", fixture.store], environment: ["LARDER_API_KEY": "key"])
                #expect(outcome.status == 1 && outcome.output.hasPrefix("set aside \(id)"), "\(outcome)")
            }
            #expect(try await fixture.larder("mutations", "show", "\(id)").output.contains("conflict"))
        }
    }

    /// Runs `body` with a store in which a mutation is queued that AppSync's server answers.
    private func withAnswered(_ body: (CommandFixture, _ url: String, _ id: String) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            let schema = "type Query { n: Int } type Mutation { name: String }"
            let queued = try await fixture.larder([
                "enqueue", "--schema", fixture.write(schema, to: "schema.graphqls"), "--operation",
                fixture.write("mutation { name }", to: "name.graphql"),
            ])
            let id = queued.output.trimmingCharacters(in: .newlines)
            try await ForeignServer.run("appsync.py", Self.start) { server in
                try await body(fixture, server.url.absoluteString, id)
            }
        }
    }

    @Test(
        "run sends its mutations with the header that --header gives",
        .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
    func headers() async throws {
        try await withAnswered { fixture, url, id in
            let key = "x-api-key: @\(try fixture.write("key\n", to: "key.txt"))"
            let outcome = try await fixture.larder(
                "run", "--until-idle", "--give-up-after", "10", "--header", key, "--endpoint", url)
            #expect(outcome.status == 0 && outcome.output == "applied \(id)\n", "\(outcome)")
        }
    }

    @Test(
        "run with --idempotency-header introduces itself to AppSync as --auth says",
        .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
    func authorizedBesideHeader() async throws {
        try await withAnswered { fixture, url, id in
            let run = ["run", "--until-idle", "--give-up-after", "10", "--endpoint", url, "--store", fixture.store]
            let outcome = try await LarderProcess.run(
                run + ["--auth", "api-key", "--idempotency-header", "X-Key"], environment: ["LARDER_API_KEY": "key"])
            #expect(outcome.status == 0 && outcome.output == "applied \(id)\n", "\(outcome)")
        }
    }

    @Test("A transfer whose keys the storage has refused waits for a sign-in")
    func refusedTransfer() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                let attempt = try await fixture.begin(id)
                let failure = TransferFailure(
                    code: "object.expiredCredentials", message: "too old", time: Date(timeIntervalSinceNow: 1))
                try await fixture.withTable { try await $0.retryLater(attempt, at: nil, failure, now: Date()) }
                try news.tell(app)
                #expect(news.waits() == ["waiting: transfer \(id.text) waits for a sign-in: too old"])
            }
        }
    }

    @Test("run says once what its runners wait for: a network, the storage, a user, or another process")
    func runnersWait() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                let said = [
                    news.change(.running, nil), news.change(.offline, .offline), news.change(.offline, .offline),
                    news.change(.running, .offline), news.change(.running, .waitingForSignIn),
                    news.change(.waitingForSignIn, .running), news.change(.running, .standingBy),
                ]
                #expect(
                    said == [
                        nil, "there is no network", nil, "there is no network",
                        "the storage does not take the credentials", "the server does not know the user",
                        "another process carries out what waits here; standing by",
                    ])
            }
        }
    }
}
