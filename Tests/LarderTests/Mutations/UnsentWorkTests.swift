import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@Suite("Unsent work when everything else is removed", .timeLimit(.minutes(10)))
struct UnsentWorkTests {
    private static let card = GraphQLFragment("fragment F on Recipe { title rating }")

    private func rate(_ stars: Int64) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($input: Rating!) { rate(input: $input) { id rating } }",
            variables: ["input": ["recipe": "1", "stars": .int(stars)]])
    }

    private func expected(_ rating: Double) -> MutationOptions {
        MutationOptions(optimisticResponse: ["rate": ["__typename": "Recipe", "id": "1", "rating": .float(rating)]])
    }

    private static let agreeing = ScriptedServer { request in
        guard case .object(let variables)? = try? Value(json: request.variables),
            case .object(let input)? = variables["input"], case .int(let stars)? = input["stars"]
        else { throw TransportError.away }
        return #"{"data":{"rate":{"__typename":"Recipe","id":"1","rating":\#(stars)}}}"#
    }

    private func write(_ app: Partition) async throws {
        try await app.write("Recipe:1", Self.card, ["title": "Soup", "rating": 1])
    }

    @Test("Clear does not delete unsent work without a word: it refuses, with what there is, and removes nothing")
    func refused() async throws {
        try await withStoreFixture { (app) throws in
            try await write(app)
            try await app.enqueue(rate(5), options: expected(5))
            for remove in [{ try await app.clear() }, { try await app.erase() }] as [() async throws -> Void] {
                let error = await #expect(throws: LarderError.self) { try await remove() }
                #expect(error?.code == .operationsUnsentWork)
                #expect(error?.unsentMutations == 1 && error?.unsentUploads == 0)
                #expect(error?.message.hasPrefix("Not sent yet: 1 mutation that can be sent, 0 set aside") == true)
            }
            #expect(try app.read("Recipe:1", Self.card)["title"]?.string == "Soup")
            #expect(try app.hasUnsentMutations())
        }
    }

    @Test("A dead letter is unsent as well")
    func deadLetter() async throws {
        let refusing = ScriptedServer { _ in #"{"data":null,"errors":[{"message":"no"}]}"# }
        try await withStoreFixture(refusing) { (app) throws in
            try await app.enqueue(rate(5), options: expected(5))
            try await MutationRunner(app).drain()
            for count in 1...2 {
                let error = await #expect(throws: LarderError.self) { try await app.clear() }
                #expect(error?.code == .operationsUnsentWork && error?.unsentMutations == count)
                try await app.enqueue(rate(4), options: expected(4))
            }
            try await app.clear(unsent: .discard)
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("A mutation that is kept is seen over the empty cache, and sent")
    func kept() async throws {
        try await withStoreFixture(Self.agreeing) { (app) throws in
            try await write(app)
            let receipt = try await app.enqueue(rate(5), options: expected(4))
            try await app.erase(unsent: .keep)
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 4)
            #expect(throws: LarderError.self) { try app.read("Recipe:1", Self.card) }
            try await MutationRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 5)
        }
    }

    @Test("Clearing that keeps unsent work removes all that the server said")
    func clearedAround() async throws {
        try await withStoreFixture { (app) throws in
            try await write(app)
            let receipt = try await app.enqueue(rate(5))
            try await app.clear(unsent: .keep)
            await expectCode(.miss) { _ = try app.read("Recipe:1", Self.card) }
            #expect(try receipt.status()?.state == .pending)
        }
    }

    @Test("Erasing forgets outcomes, pins and named watchers also where it keeps the unsent mutations")
    func keptAlone() async throws {
        try await withStoreFixture(Self.agreeing) { (app) throws in
            let sent = try await app.enqueue(rate(5), options: expected(5))
            try await MutationRunner(app).drain()
            #expect(try sent.status()?.state == .applied)
            try await app.pin(named: "pin", recipeList)
            _ = try await app.watch(named: "watcher", recipeList)
            let unsent = try await app.enqueue(rate(4), options: expected(4))
            try await app.erase(unsent: .keep)
            #expect(try unsent.status()?.state == .pending)
            #expect(try sent.status() == nil)
            #expect(try app.pins().isEmpty)
            #expect(try app.watcherNames().isEmpty)
        }
    }

    @Test("A discarded mutation leaves its outcome, and no trace in what is shown; erasing leaves no outcome either")
    func discarded() async throws {
        try await withStoreFixture { (app) throws in
            var receipts: [MutationReceipt] = []
            // More than once: after one commit the store shows its queue anew by itself, which would hide that `clear` does
            // not. Of commits that follow each other quickly it waits a moment.
            for _ in 0..<4 {
                try await write(app)
                let receipt = try await app.enqueue(rate(5), options: expected(5))
                try await app.clear(unsent: .discard)
                await expectCode(.miss) {
                    _ = try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { rating }"))
                }
                #expect(try receipt.status()?.state == .discarded)
                receipts.append(receipt)
            }
            try await app.erase()
            for receipt in receipts { #expect(try receipt.status() == nil) }
        }
    }

    @Test("Clearing discards nothing while a mutation is under way, and counts that mutation as unsent")
    func underWay() async throws {
        let (isSent, isOpen) = (Flag(), Flag())
        let slow = ScriptedServer { _ in
            isSent.set()
            await isOpen.wait()
            return #"{"data":{"rate":{"__typename":"Recipe","id":"1","rating":5}}}"#
        }
        try await withStoreFixture(slow) { (app) throws in
            try await write(app)
            let receipt = try await app.enqueue(rate(5), options: expected(5))
            let later = try await app.enqueue(rate(4), options: expected(4))
            let draining = Task { try await MutationRunner(app).drain() }
            await isSent.wait()
            let refusal = await #expect(throws: LarderError.self) { try await app.clear() }
            #expect(refusal?.unsentMutations == 2)
            let error = await #expect(throws: LarderError.self) { try await app.clear(unsent: .discard) }
            #expect(error?.code.rawValue == "operations.unsentWork")
            #expect(try later.status()?.state == .pending)
            #expect(try app.read("Recipe:1", Self.card)["title"]?.string == "Soup")
            isOpen.set()
            try await draining.value
            #expect(try receipt.status()?.state == .applied)
            try await app.clear()
        }
    }

    /// Runs `body` with a mutation that was answered by the server, when the process ended before it stored the answer.
    private func withUnstoredAnswer(
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (Partition, MutationReceipt) async throws -> Void
    ) async throws {
        try await withOpenStore(Self.agreeing) { _, store, app in
            let receipt = try await app.enqueue(rate(5), options: expected(5))
            let queue = try store.operationsDatabase().mutations
            let heads = try queue.runnable(in: Store.unnamedPartition, now: Date()).heads
            let head = try #require(heads.first, sourceLocation: sourceLocation)
            let begun = try await queue.begin(head.id, owner: "gone", now: Date())
            let answer = #"{"data":{"rate":{"__typename":"Recipe","id":"1","rating":5}}}"#
            try await queue.answer(begun.attempt, Array(answer.utf8), now: Date())
            try await body(app, receipt)
        }
    }

    @Test("Erasing waits for an answer that is yet to be stored: it would bring back what it is about")
    func unstored() async throws {
        try await withUnstoredAnswer { app, receipt in
            for unsent in [Partition.UnsentWork.refuse, .discard] {
                let error = await #expect(throws: LarderError.self) { try await app.erase(unsent: unsent) }
                #expect(error?.code.rawValue == "operations.unsentWork")
            }
            try await MutationRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            try await app.erase()
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            #expect(throws: LarderError.self) { try app.read("Recipe:1", rating) }
            #expect(try receipt.status() == nil)
        }
    }

    @Test("The refusal to erase before an answer is stored says how many mutations were answered")
    func unstoredCount() async throws {
        try await withUnstoredAnswer { app, _ in
            let error = await #expect(throws: LarderError.self) { try await app.erase() }
            #expect(error?.code == .operationsUnsentWork && error?.unsentMutations == 1)
            try await MutationRunner(app).drain()
        }
    }

    @Test("Erasing leaves the session signed in, with the credentials that it has")
    func keepsSession() async throws {
        try await withTemporaryFolder { (folder) throws in
            var options = Store.Options()
            options.keys = InMemoryKeyProvider()
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition()
            let tokens = Credentials.UserPoolTokens(
                idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture)
            try await app.session.signIn(Credentials(userPool: tokens), within: .seconds(300))
            try await app.erase()
            #expect(try app.session.state == .signedIn)
            let reading = try await app.session.storedCredentials(within: .seconds(300))
            guard case .present(let stored) = reading else {
                Issue.record("\(reading)")
                return
            }
            #expect(stored.userPool?.accessToken == "a" && stored.userPool?.refreshToken == "r")
            try store.close()
        }
    }

    @Test("The refusal to discard while mutations are under way says how many of them there are")
    func countUnderWay() async throws {
        try await withOpenStore { _, store, app in
            for lane in ["a", "a", "b"] { try await app.enqueue(rate(5), options: .init(lane: MutationLane(lane))) }
            let queue = try store.operationsDatabase().mutations
            for head in try queue.runnable(in: Store.unnamedPartition, now: Date()).heads {
                _ = try await queue.begin(head.id, owner: "another", now: Date())
            }
            for remove in [
                { try await app.clear(unsent: .discard) }, { try await app.erase(unsent: .discard) },
            ] as [() async throws -> Void] {
                let error = await #expect(throws: LarderError.self) { try await remove() }
                #expect(error?.code == .operationsUnsentWork && error?.unsentMutations == 2)
            }
        }
    }
}
