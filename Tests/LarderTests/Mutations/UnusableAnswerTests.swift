import Foundation
import Larder
import LarderOperations
import LarderRecords
import LarderTestSupport
import Synchronization
import Testing

private let stars = GraphQLFragment("fragment F on Recipe { rating }")

private func rate(_ recipe: String, _ stars: Int64) -> GraphQLOperation {
    GraphQLOperation(
        "mutation Rate($recipe: ID!, $stars: Int!) { rate(input: {recipe: $recipe, stars: $stars}) { id rating } }",
        variables: ["recipe": .string(recipe), "stars": .int(stars)])
}

private func rated(_ recipe: String, _ rating: Int64) -> Value {
    ["rate": ["__typename": "Recipe", "id": .string(recipe), "rating": .int(rating)]]
}

@Suite("Answers, resolvers and checks that say what cannot be used", .timeLimit(.minutes(10)))
struct UnusableAnswerTests {
    /// The answer of the first request is lost, after it took effect.
    private func losing() -> ScriptedServer {
        ScriptedServer.rating(tellsRepeats: false) { $0 == 0 ? (TransportError(.timedOut, "late"), true) : nil }
    }

    @Test(
        "A mutation that took effect without a storable answer is applied, and its expected change is gone",
        arguments: [nil, ["rate": "nonsense"], ["other": 1], 7] as [Value?])
    func unstored(response: Value?) async throws {
        try await withStoreFixture(losing()) { (app) throws in
            try await app.write("Recipe:1", stars, ["rating": 1])
            let receipt = try await app.enqueue(
                rate("1", 5), options: .init(optimisticResponse: rated("1", 5), check: "rated"))
            #expect(try app.read("Recipe:1", stars)["rating"]?.double == 5)
            try await quickRunner(app) { $0.checks["rated"] = { _ in .tookEffect(response: response) } }.drain()
            let status = try #require(try receipt.status())
            #expect(status.state == .applied)
            #expect(status.result == nil)
            #expect(try app.read("Recipe:1", stars)["rating"]?.double == 1)
            #expect(try app.records.applied().map(\.kind) == [.rejected])
            #expect(try !app.hasUnsentMutations())
        }
    }

    /// Expects that an answer that was noted before the schema changed is not stored, and settles its mutation.
    private func expectSettledUnstored(
        _ operation: GraphQLOperation, _ options: MutationOptions = MutationOptions(), by server: ScriptedServer,
        changing schema: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(server: server)
            let receipt = try await app.enqueue(operation, options: options)
            let error = await #expect(throws: LarderError.self, sourceLocation: sourceLocation) {
                try await quickRunner(app) { options in
                    options.reached = { if $0 == .acknowledged { try? store.close() } }
                }.drain()
            }
            #expect(error?.code == .parked, sourceLocation: sourceLocation)
            let again = try Store.open(at: folder, schema: try Schema(parsing: schema))
            let later = try again.partition(server: server)
            let settling = later.mutation(receipt.id)
            #expect(try settling.status()?.state == .acknowledged, sourceLocation: sourceLocation)
            try await quickRunner(later).drain()
            #expect(try settling.status()?.state == .applied, sourceLocation: sourceLocation)
            #expect(try later.records.applied().map(\.kind) == [.rejected], sourceLocation: sourceLocation)
            #expect(throws: LarderError.self, sourceLocation: sourceLocation) { try later.read("Recipe:1", stars) }
            try again.close()
        }
    }

    @Test("An answer that was noted, and no longer fits the schema, is not stored, and settles its mutation")
    func changedSchema() async throws {
        let server = ScriptedServer.rating()
        let schema = fixtureSchema.replacing("rate(input: Rating!)", with: "judge(input: Rating!)")
        let options = MutationOptions(optimisticResponse: rated("1", 5))
        try await expectSettledUnstored(rate("1", 5), options, by: server, changing: schema)
        #expect(server.effects == ["1 5"])
    }

    @Test("A noted answer is stored though another that is stored with it does not fit")
    func besideUnfit() async throws {
        try await withOpenStore(ScriptedServer.rating()) { _, store, app in
            let answers = [
                #"{"data":{"rate":"nonsense"}}"#, #"{"data":{"rate":{"__typename":"Recipe","id":"2","rating":4}}}"#,
            ]
            let queue = try store.operationsDatabase().mutations
            var receipts: [MutationReceipt] = []
            for (recipe, answer) in zip(["1", "2"], answers) {
                let receipt = try await app.enqueue(rate(recipe, 4))
                let attempt = try await queue.begin(receipt.id.uuid, owner: "killed", now: Date()).attempt
                try await queue.answer(attempt, Array(answer.utf8), now: Date())
                receipts.append(receipt)
            }
            try await quickRunner(app).drain()
            for receipt in receipts { #expect(try receipt.status()?.state == .applied) }
            #expect(try receipts[0].status()?.result == nil)
            #expect(try app.read("Recipe:2", stars)["rating"]?.double == 4)
        }
    }

    @Test("A noted answer whose mutation has variables that no longer fit is not stored, and settles the mutation")
    func changedInput() async throws {
        let server = ScriptedServer { _ in #"{"data":{"rate":{"__typename":"Recipe","id":"1","rating":5}}}"# }
        let schema = fixtureSchema.replacing("stars: Int!", with: "stars: Int! by: ID!")
        let operation = GraphQLOperation(
            "mutation Rate($input: Rating!) { rate(input: $input) { id rating } }",
            variables: ["input": ["recipe": "1", "stars": 5]])
        try await expectSettledUnstored(operation, by: server, changing: schema)
        #expect(server.requests.count == 1)
    }

    @Test("Changes of lists that cannot be read any more keep no answered mutation from being settled")
    func damagedListChanges() async throws {
        try await withOpenStore(ScriptedServer.rating()) { folder, _, app in
            let receipt = try await app.enqueue(
                rate("1", 5), options: .init(listChanges: [.insert("Recipe:1", into: "recipes")]))
            let next = try await app.enqueue(rate("2", 4))
            try OtherProgram(folder).run("UPDATE mutation_content SET list_edits = x'7b' WHERE list_edits IS NOT NULL")
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(try next.status()?.state == .applied)
        }
    }

    @Test("A resolver that says what JSON cannot say has its mutation set aside", arguments: [Double.nan, .infinity])
    func resolverWithoutJSON(number: Double) async throws {
        let conflict = #"{"data":null,"errors":[{"message":"changed","errorType":"ConflictUnhandled"}]}"#
        let server = ScriptedServer.rating(errors: { $0 == 0 ? conflict : nil })
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(rate("1", 5), options: .init(resolver: "odd"))
            let next = try await app.enqueue(rate("1", 4), options: .init())
            try await quickRunner(app) {
                $0.resolvers["odd"] = { _ in .retry(variables: ["recipe": "1", "stars": .float(number)]) }
            }.drain()
            let status = try #require(try receipt.status())
            #expect(status.state == .deadLetter)
            #expect(status.failure?.kind == .conflict)
            #expect(status.failure?.message.contains("the resolver odd did not decide") == true)
            #expect(try next.status()?.state == .applied)
            // It says what was sent, and can be replayed as it is.
            try await app.replayMutation(receipt.id)
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 4", "1 5"])
        }
    }

    @Test("A check that answers what JSON cannot say has not answered")
    func checkWithoutJSON() async throws {
        try await withStoreFixture(losing()) { (app) throws in
            let receipt = try await app.enqueue(
                rate("1", 5), options: .init(optimisticResponse: rated("1", 5), check: "odd"))
            try await quickRunner(app) {
                $0.checks["odd"] = { _ in .tookEffect(response: ["rate": ["rating": .float(.nan)]]) }
            }.drain()
            let status = try #require(try receipt.status())
            #expect(status.state == .deadLetter)
            #expect(status.failure?.kind == .outcomeUnknown)
            #expect(status.failure?.message.contains("the check odd did not answer") == true)
            #expect(throws: LarderError.self) { try app.read("Recipe:1", stars) }
        }
    }

    @Test(
        "An answer whose errors are no list is none: what the server did is unknown",
        arguments: [#"{"message":"no"}"#, #""no""#, "7", "true"])
    func errorsNoList(errors: String) async throws {
        let text = #"{"data":{"rate":{"__typename":"Recipe","id":"1","rating":5}},"errors":\#(errors)}"#
        try await withStoreFixture(ScriptedServer { _ in text }) { (app) throws in
            let receipt = try await app.enqueue(rate("1", 5), options: .init(optimisticResponse: rated("1", 5)))
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .deadLetter)
            #expect(try receipt.status()?.failure?.kind == .outcomeUnknown)
            #expect(throws: LarderError.self) { try app.read("Recipe:1", stars) }
        }
    }

    @Test("After errors that are no list a mutation is sent again where the server tells a repeat")
    func errorsNoListThenAnswer() async throws {
        let server = ScriptedServer.rating(errors: { $0 < 2 ? #"{"data":null,"errors":{"message":"no"}}"# : nil })
        #expect(try await settled(rate("1", 5), by: server).state == .applied)
        #expect(server.effects == ["1 5"])
        #expect(server.requests.count == 3)
    }

    @Test("Errors that are null are none")
    func errorsNull() async throws {
        let text = #"{"data":{"rate":{"__typename":"Recipe","id":"1","rating":5}},"errors":null}"#
        try await withStoreFixture(ScriptedServer { _ in text }) { (app) throws in
            let receipt = try await app.enqueue(rate("1", 5), options: .init())
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(try app.read("Recipe:1", stars)["rating"]?.double == 5)
        }
    }
}
