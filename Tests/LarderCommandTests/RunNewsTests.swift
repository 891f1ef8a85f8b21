import Foundation
import Larder
import LarderCommandLine
import LarderOperations
import LarderTestSupport
import RecipeServer
import Testing

@testable import LarderCommand

extension RunNews {
    /// Looks at what there is, and tells it as `run --json` does.
    mutating func tell(_ app: Partition) throws {
        try tell(app, Output(tool: .init(name: "larder", version: 1), command: "run", isJSON: true))
    }
}

@Suite("What run tells of what waits, and of what has ended", .timeLimit(.minutes(10)))
struct RunNewsTests {
    @Test(
        "A transfer whose credentials are not taken waits for a sign-in; any other is tried again after pauses",
        arguments: [
            ("object.invalidCredentials", "waits for a sign-in"), ("object.expiredCredentials", "waits for a sign-in"),
            ("object.serverFault", "is tried again after pauses"),
        ])
    func waitingTransfer(code: String, waits: String) async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                let attempt = try await fixture.begin(id)
                let failure = TransferFailure(code: code, message: "who?", time: Date() + 1)
                try await fixture.withTable { try await $0.retryLater(attempt, at: nil, failure, now: Date()) }
                try news.tell(app)
                #expect(news.waits() == ["waiting: transfer \(id.text) \(waits): who?"])
            }
        }
    }

    @Test("run says once that there is no network, whichever of its two runners has noticed")
    func offline() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.withPartition { app in
                for (mutations, transfers) in [(.offline, nil), (.running, .offline)] as [(RunnerState, RunnerState?)] {
                    var news = try RunNews(app)
                    let (first, second) = (news.change(mutations, transfers), news.change(mutations, transfers))
                    #expect(first == "there is no network" && second == nil)
                }
            }
        }
    }

    @Test("run tells of a mutation that the server refuses that it was set aside, and why")
    func reason() async throws {
        try await CommandFixture.withRecipes { fixture, server in
            let rate = """
                mutation Rate($id: ID!, $stars: Int!) { rateRecipe(id: $id, stars: $stars) { __typename id rating } }
                """
            let queued = try await fixture.larder([
                "enqueue", "--schema", fixture.path("recipes.graphqls"), "--operation",
                fixture.write(rate, to: "rate.graphql"), "--variables",
                fixture.write(#"{"id":"no-such","stars":2}"#, to: "rating.json"),
            ])
            let outcome = try await fixture.larder("run", "--until-idle", "--endpoint", server.url.absoluteString)
            let id = queued.output.trimmingCharacters(in: .newlines)
            #expect(outcome.status == 1 && outcome.output.hasPrefix("set aside \(id): "), "\(queued) \(outcome)")
        }
    }

    @Test("A transfer that is cancelled, and a mutation that is discarded, have ended, which is progress of a run")
    func givenUp() async throws {
        try await TransferFixture.run { fixture in
            let upload = try await fixture.upload()
            try await fixture.withPartition { app in
                let mutation = try await app.enqueue(GraphQLOperation("mutation { add(title: \"a\") { id } }")).id
                var news = try RunNews(app)
                try news.tell(app)
                var progress = news.lastProgress
                try await app.transfers[TransferID(upload)].cancel()
                try news.tell(app)
                #expect(news.lastProgress > progress)
                progress = news.lastProgress
                try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                    try await database.setAside(mutation.uuid)
                    _ = try await database.mutations.discard(mutation.uuid, dependents: .release, now: Date())
                }
                try news.tell(app)
                #expect(news.lastProgress > progress)
            }
        }
    }

    private static let add = GraphQLOperation("mutation { add(title: \"a\") { id } }")

    private func setAside(_ id: MutationID, _ fixture: TransferFixture) async throws {
        try await OperationsDatabase.using(URL(filePath: fixture.store)) { try await $0.setAside(id.uuid) }
    }

    private func json(_ news: RunNews) -> String { String(decoding: news.json.bytes, as: UTF8.self) }

    @Test("A mutation that is replayed while run works, and set aside once more, was set aside by that run")
    func setAsideAgain() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.withPartition { app in
                let id = try await app.enqueue(Self.add).id
                try await setAside(id, fixture)
                var news = try RunNews(app)
                try news.tell(app)
                #expect(!news.hasFailures)
                try await app.replayMutation(id)
                try news.tell(app)
                try await setAside(id, fixture)
                try news.tell(app)
                #expect(news.hasFailures)
                #expect(json(news).contains(#""setAside":["\#(id)"]"#), "\(json(news))")
            }
        }
    }

    @Test("A transfer that had failed before a run is no failure of it, and no progress")
    func failedBefore() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(fixture.upload()))
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                let progress = news.lastProgress
                try news.tell(app)
                #expect(!news.hasFailures && news.lastProgress == progress)
            }
        }
    }

    @Test("A mutation that is queued while run works counts as sent once it is applied")
    func queuedMutation() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                let id = try await app.enqueue(Self.add).id.uuid
                try news.tell(app)
                try await OperationsDatabase.using(URL(filePath: fixture.store)) { try await $0.settle(id) }
                try news.tell(app)
                #expect(json(news).contains(#""sent":1,"#), "\(json(news))")
            }
        }
    }

    @Test("A transfer that is queued while run works counts as transferred once it is done")
    func queuedTransfer() async throws {
        try await TransferFixture.run { fixture in
            // It makes the file.
            _ = try await fixture.upload()
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                let place = ObjectLocation(bucket: "media", key: "later", region: "eu-west-1")
                let id = try await app.transfers.upload(fixture.source, to: place).id.uuid
                try news.tell(app)
                let attempt = try await fixture.begin(id)
                try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
                try news.tell(app)
                #expect(json(news).contains(#""transferred":1,"#), "\(json(news))")
            }
        }
    }

    @Test("The JSON of run names the transfers that remain apart from the mutations that do")
    func remaining() async throws {
        try await TransferFixture.run { fixture in
            let upload = try await fixture.upload()
            try await fixture.withPartition { app in
                let id = try await app.enqueue(Self.add).id
                var news = try RunNews(app)
                try news.tell(app)
                let named = #""remaining":["\#(id)"],"remainingTransfers":["\#(upload.text)"]"#
                #expect(json(news).contains(named), "\(json(news))")
            }
        }
    }
}
