import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Handles of parked partitions", .timeLimit(.minutes(10)))
struct ParkedHandleTests {
    @Test("A handle of a parked partition refuses to evict, to collect garbage and to erase")
    func upkeep() async throws {
        try await withTransferFixture { fixture in
            let app = fixture.app
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Soup"])
            _ = try await fixture.store.switch(to: backend("b"))
            await expectCode(.parked) { _ = try await app.evict(maxAge: .zero) }
            await expectCode(.parked) { _ = try await app.collectGarbage() }
            await expectCode(.parked) { try await app.erase(unsent: .discard) }
        }
    }

    @Test("A handle of a parked partition refuses to remove a pin or a named watcher")
    func names() async throws {
        try await withTransferFixture { fixture in
            let app = fixture.app
            try await app.pin(named: "list", recipeList)
            _ = try await app.watch(named: "list", recipeList)
            _ = try await fixture.store.switch(to: backend("b"))
            await expectCode(.parked) { _ = try await app.unpin(named: "list") }
            await expectCode(.parked) { try await app.removeWatcher(named: "list") }
            #expect(try app.pins().map(\.name) == ["list"] && app.watcherNames() == ["list"])
        }
    }

    @Test("A handle of a parked partition still lists the mutations and the transfers that are queued there")
    func lists() async throws {
        try await withTransferFixture { fixture in
            let app = fixture.app
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await app.transfers.upload(file, to: TransferFixture.location)
            let receipt = try await app.enqueue(giveStars("1", 5))
            _ = try await fixture.store.switch(to: backend("b"))
            #expect(try app.mutations().map(\.id) == [receipt.id])
            #expect(try app.transfers.list().map(\.id) == [upload.id])
            #expect(try app.transfers.all() == [upload])
        }
    }

    @Test("A handle of a parked partition refuses to replay or discard a mutation that was set aside")
    func setAside() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withEmptyStore { store in
            let app = try store.partition(of: backend("a"), server: server)
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app).drain()
            _ = try await store.switch(to: backend("b"))
            await expectCode(.parked) { try await app.replayMutation(receipt.id) }
            await expectCode(.parked) { try await app.discardMutation(receipt.id, dependents: .release) }
            #expect(try receipt.status()?.state == .deadLetter)
        }
    }

    @Test("The streams of the queue and of a transfer's progress end when their partition is parked")
    func streams() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let (isQueueOver, isProgressOver) = (Flag(), Flag())
            let readings = [
                Task { [queue = fixture.app.queue] in
                    for await _ in queue {}
                    isQueueOver.set()
                },
                Task { [progress = upload.progress] in
                    for await _ in progress {}
                    isProgressOver.set()
                },
            ]
            _ = try await fixture.store.switch(to: backend("b"))
            for flag in [isQueueOver, isProgressOver] { await flag.wait() }
            #expect(isQueueOver.isSet && isProgressOver.isSet)
            for reading in readings { reading.cancel() }
        }
    }

    @Test("The stream of a named watcher ends when its partition is parked, though its last state is not yet recorded")
    func namedStream() async throws {
        try await withTransferFixture { fixture in
            let app = fixture.app
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Soup"])
            var states = try await app.watch(named: "list", recipeList).makeAsyncIterator()
            _ = try await states.next()
            _ = try await fixture.store.switch(to: backend("b"))
            #expect(try await states.next() == nil)
        }
    }

    @Test("A parked partition ends its subscriptions, and takes new ones only once it is current again")
    func subscriptions() async throws {
        let line = ScriptedLine()
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: SubscriptionHubTests.schema))
            let app = try store.partition(of: backend("a"), server: line)
            let subscription = try await app.subscribe(SubscriptionHubTests.changed)
            _ = try await line.started()
            _ = try await store.switch(to: backend("b"))
            var events = subscription.makeAsyncIterator()
            while try await next(&events, within: .seconds(20)) != nil {}
            #expect(subscription.state.phase == .ended && subscription.state.error?.code == .parked)
            await expectCode(.parked) { _ = try await app.subscribe(SubscriptionHubTests.changed) }
            _ = try await store.switch(to: backend("a"))
            let again = try await app.subscribe(SubscriptionHubTests.changed)
            try #require(again.state.phase != .ended)
            _ = try await line.started()
            try await eventually { again.state.phase == .live }
            try store.close()
        }
    }

    @Test("The standings of a session end when its partition is parked")
    func standings() async throws {
        try await withTransferFixture { fixture in
            var standings = try fixture.app.session.standings.makeAsyncIterator()
            #expect(try await next(&standings, within: .seconds(20)) != nil)
            _ = try await fixture.store.switch(to: backend("b"))
            #expect(try await next(&standings, within: .seconds(20)) == nil)
        }
    }
}
