import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Leaving an environment", .timeLimit(.minutes(10)))
struct LeavingTests {
    @Test(
        "Opening with another environment parks, carries or discards pending mutations, as the program says",
        arguments: PendingWork.allCases)
    func opened(leaving work: PendingWork) async throws {
        try await withEmptyStore { store in
            let receipt = try await store.partition(of: backend("a")).enqueue(giveStars("1", 5))
            let app = try store.partition(of: backend("b"), leaving: work)
            #expect(try app.mutations().map(\.id) == (work == .carry ? [receipt.id] : []))
            let state: MutationStatus.State = work == .discard ? .discarded : .pending
            #expect(try receipt.status()?.state == state)
        }
    }

    @Test("The stream of current partitions reports a switch that its own process makes")
    func told() async throws {
        try await withEmptyStore { store in
            _ = try store.partition(of: backend("a"))
            var currents = try store.currentPartitions().makeAsyncIterator()
            #expect(try await next(&currents)??.environment == "a")
            _ = try await store.switch(to: backend("b"))
            #expect(try await next(&currents, within: .seconds(20))??.environment == "b")
        }
    }

    @Test("A partition that is the current one again shows no mutation that was carried along from it")
    func carriedAway() async throws {
        try await withEmptyStore { store in
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            try await store.partition(of: backend("a")).enqueue(
                giveStars("1", 5),
                options: .init(optimisticResponse: [
                    "rate": ["__typename": "Recipe", "id": "1", "title": "Soup", "rating": 5]
                ]))
            let there = try await store.switch(to: backend("b"), pending: .carry).partition
            #expect(try there.read("Recipe:1", rating)["rating"]?.double == 5)
            let back = try await store.switch(to: backend("a")).partition
            await expectCode(.miss) { _ = try back.read("Recipe:1", rating) }
        }
    }

    @Test("The report of a switch counts the pending mutations of both partitions before and after it")
    func report() async throws {
        try await withEmptyStore { store in
            let app = try store.partition(of: backend("a"))
            for stars in 1...2 { try await app.enqueue(giveStars("1", stars)) }
            let change = try await store.switch(to: backend("b"), pending: .carry)
            let left = try #require(change.left)
            #expect(left.before.pending == 2 && left.after.pending == 0)
            #expect(change.entered.before.pending == 0 && change.entered.after.pending == 2)
        }
    }

    @Test("A slow reader of the current partitions gets the newest of them")
    func slowReader() async throws {
        try await withEmptyStore { store in
            _ = try store.partition(of: backend("a"))
            var currents = try store.currentPartitions().makeAsyncIterator()
            for name in ["b", "c"] { _ = try await store.switch(to: backend(name)) }
            #expect(try await next(&currents)??.environment == "c")
        }
    }

    @Test("The report of a switch counts the transfers that went along")
    func carriedTransfers() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(of: backend("a"))
            let file = folder.appending(path: "photo")
            try Data([1]).write(to: file)
            for number in 1...2 { _ = try await app.transfers.upload(file, to: .init(bucket: "b", key: "\(number)")) }
            let change = try await store.switch(to: backend("b"), pending: .carry)
            #expect(change.carriedTransfers == 2 && change.discardedTransfers == 0)
            #expect(change.left?.after.transfers == 0 && change.entered.after.transfers == 2)
            try store.close()
        }
    }

    @Test("The partition that a switch enters reaches the server that the switch names")
    func namedServer() async throws {
        try await withEmptyStore { store in
            _ = try store.partition(of: backend("a"))
            let server = ScriptedServer { _ in recipeListAnswer }
            let app = try await store.switch(to: backend("b"), server: server).partition
            let answer = try await app.fetch(recipeList, policy: .networkOnly)
            #expect(answer["recipes"]?[0]?["title"]?.string == "Soup")
            #expect(server.requests.count == 1)
        }
    }

    @Test(
        "A switch or sign-in to the partition that is the current one leaves its queue alone, whatever is said of it",
        arguments: PendingWork.allCases)
    func sameAgain(_ work: PendingWork) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            let app = try await store.switch(to: backend("a"), user: .user("ada")).partition
            let receipt = try await app.enqueue(giveStars("1", 5))
            let again = try await store.switch(to: backend("a"), user: .user("ada"), pending: work)
            #expect(again.left == nil && again.carried == 0 && again.discarded == 0)
            #expect(try receipt.status()?.state == .pending)
            let tokens = Credentials.UserPoolTokens(idToken: "i", accessToken: "a", refreshToken: "r", expires: nil)
            _ = try await store.signIn(Credentials(userPool: tokens), as: "ada", pending: work, within: soon)
            #expect(try receipt.status()?.state == .pending)
            try store.close()
        }
    }
}
