import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Connections that take the place of others", .timeLimit(.minutes(5)))
struct ReplacementTests {
    private typealias Hub = SubscriptionHubTests

    /// A subscription that is live on its first connection.
    private struct Live {
        let app: Partition
        let transport: ScriptedLine
        let subscription: Subscription
        let first: ScriptedLine.Opened
        /// On the first connection.
        let id: String
        let queries: @Sendable () -> Int

        func text(_ id: String = "1") -> String? {
            try? app.read("Item:\(id)", GraphQLFragment("fragment F on Item { text }"))["text"]?.string
        }

        /// Has the first connection expire, and opens the one that is to take its place.
        func replacing(
            sourceLocation: SourceLocation = #_sourceLocation
        ) async throws -> (ScriptedLine.Opened, id: String) {
            await first.line.take(.expiring(after: .zero))
            return try await transport.opened(sourceLocation: sourceLocation)
        }
    }

    private func live(pacing: SubscriptionPacing = .quick, _ body: (Live) async throws -> Void) async throws {
        let count = Mutex(0)
        let transport = ScriptedLine(pacing: pacing) { _ in
            count.withLock { $0 += 1 }
            return #"{"data":{"items":[]}}"#
        }
        try await Hub().withApp(transport) { app, _ in
            let (subscription, first, id) = try await Hub().begin(app, transport, Hub.catchingUp)
            try await eventually { subscription.state.phase == .live }
            try await body(
                Live(app: app, transport: transport, subscription: subscription, first: first, id: id) {
                    count.withLock { $0 }
                })
        }
    }

    @Test("All has begun on the other connection before the old one is asked to end, and nothing was missed")
    func replaces() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            let ends = live.first.endAfterCommands()
            await live.first.line.tell(live.id, #"{"id":"1","text":"on the old one"}"#)
            try await eventually { live.text() == "on the old one" }
            await second.line.take(.started(id: other))
            // What comes on the other waits for what is under way on the old one.
            for text in ["newer", "newest"] { await second.line.tell(other, #"{"id":"1","text":"\#(text)"}"#) }
            await live.first.line.tell(live.id, #"{"id":"1","text":"late"}"#)
            try await eventually { live.text() == "late" }
            await live.first.line.take(.completed(id: live.id))
            try await eventually { live.text() == "newest" }
            #expect(await ends.value == [live.id])
            await second.line.tell(other, #"{"id":"1","text":"after"}"#)
            try await eventually { live.text() == "after" }
            #expect(live.subscription.state.phase == .live)
            #expect(live.subscription.state.staleSince == nil)
            #expect(live.queries() == 1)
            #expect(live.transport.attemptCount == 2)
            var texts: [String?] = []
            for await case .data(let event) in live.subscription {
                texts.append(event["changed"]?["text"]?.string)
                if texts.last == "after" { break }
            }
            #expect(texts == ["on the old one", "late", "newer", "newest", "after"])
        }
    }

    @Test("The old connection gets no stop command before all subscriptions have started on the new one")
    func waitsForAll() async throws {
        try await live { live in
            let added = try await live.app.subscribe(Hub.ids)
            try await live.first.startNext()
            let (second, other) = try await live.replacing()
            await second.line.take(.started(id: other))
            // Commands arrive in order: if this start is the next one, no stop came before it.
            let late = try await live.app.subscribe(GraphQLOperation("subscription { changed { text } }"))
            for await command in live.first.commands {
                let isStart = if case .start = command { true } else { false }
                #expect(isStart, "\(command)")
                break
            }
            withExtendedLifetime([added, late]) {}
        }
    }

    @Test("An old connection that breaks before the other is ready is a gap, which the other closes")
    func breaks() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            live.first.end(TransportError(.interrupted, "cut"))
            try await eventually { live.subscription.state.phase == .connecting }
            #expect(live.subscription.state.staleSince != nil)
            await second.line.take(.started(id: other))
            try await eventually { live.subscription.state.phase == .live }
            #expect(live.subscription.state.staleSince == nil)
            #expect(live.queries() == 2)
            #expect(live.transport.attemptCount == 2)
        }
    }

    @Test("An old connection that breaks while it is being ended is a gap")
    func breaksWhileEnding() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            await second.line.take(.started(id: other))
            live.first.end(TransportError(.interrupted, "cut"))
            try await eventually { live.queries() == 2 && live.subscription.state.phase == .live }
            await second.line.tell(other, #"{"id":"1","text":"x"}"#)
            try await eventually { live.text() == "x" }
            #expect(live.transport.attemptCount == 2)
        }
    }

    @Test(
        "Where more events come on the other connection than are held, the query is fetched once more",
        arguments: [(1_024, 1), (1_025, 2)])
    func overflows(eventCount: Int, queryCount: Int) async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            await second.line.take(.started(id: other))
            for _ in 0..<eventCount { await second.line.tell(other, #"{"id":"1","text":"x"}"#) }
            await live.first.line.take(.completed(id: live.id))
            try await eventually {
                live.text() == "x" && live.queries() == queryCount && live.subscription.state.phase == .live
            }
            #expect(live.subscription.state.staleSince == nil)
        }
    }

    @Test("An old subscription that fails before the server has confirmed its end is a gap, and goes on on the other")
    func failsWhileEnding() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            await second.line.take(.started(id: other))
            await live.first.line.take(.failure(of: live.id, "over", mayRecover: false))
            try await eventually { live.queries() == 2 && live.subscription.state.phase == .live }
            await second.line.tell(other, #"{"id":"1","text":"x"}"#)
            try await eventually { live.text() == "x" }
        }
    }

    @Test("An end that the server does not confirm in time is a gap, and the subscription goes on on the other")
    func unconfirmed() async throws {
        try await live(pacing: .quick { $0.draining = .milliseconds(50) }) { live in
            let (second, other) = try await live.replacing()
            let ends = live.first.endAfterCommands()
            await second.line.take(.started(id: other))
            await second.line.tell(other, #"{"id":"1","text":"held"}"#)
            try await eventually { live.text() == "held" }
            try await eventually { live.queries() == 2 && live.subscription.state.phase == .live }
            #expect(live.subscription.state.staleSince == nil)
            #expect(await ends.value == [live.id])
        }
    }

    @Test("A connection that cannot take the other's place is given up, the old one goes on, and another is tried")
    func fails() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            second.end(TransportError(.interrupted, "cut"))
            let (third, _) = try await live.transport.opened()
            await live.first.line.tell(live.id, #"{"id":"1","text":"still"}"#)
            try await eventually { live.text() == "still" }
            await second.line.tell(other, #"{"id":"1","text":"dropped"}"#)
            #expect(live.subscription.state.staleSince == nil)
            #expect(live.queries() == 1)
            third.end(nil)
        }
    }

    @Test("A connection on which a subscription ends does not take the other's place", arguments: [true, false])
    func endsOnOther(hasFailed: Bool) async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            await second.line.take(hasFailed ? .failure(of: other, "no") : .completed(id: other))
            _ = await second.endAfterCommands().value
            _ = try await live.transport.opened()
            await live.first.line.tell(live.id, #"{"id":"1","text":"still"}"#)
            try await eventually { live.text() == "still" }
            #expect(live.subscription.state.staleSince == nil)
        }
    }

    @Test("A connection on which a subscription does not begin in time does not take the other's place")
    func abandons() async throws {
        try await live(pacing: .quick { ($0.opening, $0.starting) = (.zero, .seconds(2)) }) { live in
            let (second, _) = try await live.replacing()
            _ = await second.endAfterCommands().value
            _ = try await live.transport.opened()
            #expect(live.subscription.state.staleSince == nil)
        }
    }

    @Test("A start on the new connection times out as usual when the old connection breaks meanwhile")
    func givesUpOther() async throws {
        try await live(pacing: .quick { $0.starting = .seconds(1) }) { live in
            let (second, _) = try await live.replacing()
            live.first.end(TransportError(.interrupted, "cut"))
            _ = await second.endAfterCommands().value
            _ = try await live.transport.opened()
            #expect(live.subscription.state.error?.code == .transportTimedOut)
            #expect(live.transport.attemptCount == 3)
        }
    }

    @Test(
        "A connection that took another's place, broken or not, is replaced before the end that its server announced",
        arguments: [true, false])
    func replacesAnew(isBroken: Bool) async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            await second.line.take(.expiring(after: .milliseconds(50)))
            if isBroken { live.first.end(TransportError(.interrupted, "cut")) }
            await second.line.take(.started(id: other))
            if !isBroken { await live.first.line.take(.completed(id: live.id)) }
            try await eventually { live.transport.attemptCount == 3 }
            _ = try await live.transport.opened()
            #expect(live.subscription.state.phase != .connecting)
            #expect(live.transport.attemptCount == 3)
        }
    }

    @Test("What came on the other connection is stored where the old one breaks before all has begun there")
    func storesHeldOfOther() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            let added = try await live.app.subscribe(Hub.ids)
            _ = try #require(await second.nextStart())
            await second.line.take(.started(id: other))
            await second.line.tell(other, #"{"id":"1","text":"held"}"#)
            live.first.end(TransportError(.interrupted, "cut"))
            try await eventually { live.text() == "held" }
            withExtendedLifetime(added) {}
        }
    }

    @Test("What was ended for a connection that breaks before it has taken the old one's place begins there again")
    func beginsAgain() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            await second.line.take(.started(id: other))
            second.end(TransportError(.interrupted, "cut"))
            let again = try await live.first.startNext()
            try await eventually { live.queries() == 2 && live.subscription.state.phase == .live }
            await live.first.line.tell(again, #"{"id":"1","text":"again"}"#)
            try await eventually { live.text() == "again" }
        }
    }

    @Test("Connections whose server has each end at once take each other's places after pauses")
    func pauses() async throws {
        try await live(pacing: .quick { $0.backoff = .endless }) { live in
            let (second, other) = try await live.replacing()
            await second.line.take(.started(id: other))
            let ends = live.first.endAfterCommands()
            await live.first.line.take(.completed(id: live.id))
            #expect(await ends.value == [live.id])
            await second.line.take(.expiring(after: .zero))
            try await Task.sleep(for: .milliseconds(50))
            #expect(live.transport.attemptCount == 2)
        }
    }

    @Test("A later end that a server announces does not put off an earlier one")
    func keepsEarlier() async throws {
        try await live { live in
            await live.first.line.take(.expiring(after: .milliseconds(50)))
            await live.first.line.take(.expiring(after: .seconds(3_600)))
            try await eventually { live.transport.attemptCount == 2 }
            _ = try await live.transport.opened()
        }
    }

    @Test("A subscription that begins meanwhile begins on both connections")
    func adds() async throws {
        try await live { live in
            let (second, other) = try await live.replacing()
            let added = try await live.app.subscribe(Hub.ids)
            let onFirst = try #require(await live.first.nextStart())
            let onSecond = try #require(await second.nextStart())
            let ends = live.first.endAfterCommands()
            await second.line.take(.started(id: other))
            #expect(live.transport.attemptCount == 2)
            await second.line.take(.started(id: onSecond))
            await live.first.line.take(.completed(id: live.id))
            #expect(Set(await ends.value) == [live.id, onFirst])
            try await eventually { added.state.phase == .live }
        }
    }

    /// Two subscriptions that have begun on another connection, the first of which was handed over to it already.
    ///
    /// - Parameter body: Gets the second subscription, the other connection, the id of the second on the old one and
    ///   that of the first on the other.
    private func withHalfHandedOver(
        _ body: (Live, Subscription, ScriptedLine.Opened, _ id: String, _ handedOver: String) async throws -> Void
    ) async throws {
        try await live { live in
            let added = try await live.app.subscribe(Hub.ids, options: Hub.catchingUp)
            let id = try await live.first.startNext()
            try await eventually { added.state.phase == .live }
            await live.first.line.take(.expiring(after: .zero))
            let second = try #require(await live.transport.next())
            await second.line.take(.opened)
            var ids: [Bool: String] = [:]
            for await case .start(let id, let request) in second.commands {
                ids[request.document.contains("text")] = id
                if ids.count == 2 { break }
            }
            for id in ids.values { await second.line.take(.started(id: id)) }
            await live.first.line.take(.completed(id: live.id))
            try await body(live, added, second, id, try #require(ids[true]))
        }
    }

    @Test("A subscription that comes while others are handed over is handed over after them")
    func addsWhileHandingOver() async throws {
        try await withHalfHandedOver { live, added, second, id, _ in
            let late = try await live.app.subscribe(GraphQLOperation("subscription { changed { text } }"))
            let lateID = try await second.startNext()
            let ends = live.first.endAfterCommands()
            await live.first.line.take(.completed(id: id))
            // The late one did not run on the old connection yet, which is not needed any more.
            #expect(await ends.value.count == 3)
            for subscription in [live.subscription, added] {
                #expect(subscription.state.phase == .live && subscription.state.staleSince == nil)
            }
            try await eventually { late.state.phase == .live }
            await second.line.tell(lateID, #"{"id":"1","text":"late"}"#)
            try await eventually { live.text() == "late" }
        }
    }

    @Test("A subscription that fails after it was handed over begins again once all are")
    func failsAfterHandingOver() async throws {
        try await withHalfHandedOver { live, added, second, id, handedOver in
            await second.line.take(.failure(of: handedOver, "no"))
            await live.first.line.take(.completed(id: id))
            try await second.startNext()
            try await eventually { live.subscription.state.phase == .live }
            #expect(added.state.phase == .live)
        }
    }

    @Test("An old connection that breaks is no gap of a subscription that was handed over already")
    func breaksBesideHandedOver() async throws {
        try await withHalfHandedOver { live, added, second, _, _ in
            let count = live.queries()
            live.first.end(TransportError(.unreachable, "cut"))
            try await eventually { live.queries() > count && added.state.phase == .live }
            #expect(live.subscription.state.phase == .live && live.subscription.state.staleSince == nil)
            #expect(live.queries() == count + 1)
            #expect(live.transport.attemptCount == 2)
            withExtendedLifetime(second) {}
        }
    }

    @Test("From when a connection was heard of last, and not from when its end was noticed, something may be missing")
    func lastHeard() async throws {
        let clock = TestClock(Hub.start)
        try await Hub().withApp(clock: clock) { app, transport in
            let (subscription, first, _) = try await Hub().begin(app, transport, Hub.catchingUp)
            try await eventually { subscription.state.phase == .live }
            clock.advance(by: .seconds(100))
            await first.line.take(.alive)
            let heard = clock.now
            // While it is quiet, it is noted from time to time.
            try await eventually { try app.subscriptions().first?.completeUntil == heard }
            clock.advance(by: .seconds(30))
            first.end(TransportError(.timedOut, "The server said nothing"))
            try await eventually { subscription.state.staleSince != nil }
            #expect(subscription.state.staleSince == heard)
            try await Task.sleep(for: .milliseconds(20))
            #expect(try app.subscriptions().first?.completeUntil == heard)
        }
    }

    @Test("What a connection brought before it took another's place counts: until then, nothing was missed")
    func lastHeardBefore() async throws {
        let clock = TestClock(Hub.start)
        try await Hub().withApp(clock: clock) { app, transport in
            let (subscription, first, id) = try await Hub().begin(app, transport, Hub.catchingUp)
            try await eventually { subscription.state.phase == .live }
            await first.line.take(.expiring(after: .zero))
            let (second, other) = try await transport.opened()
            clock.advance(by: .seconds(100))
            let heard = clock.now
            await second.line.take(.started(id: other))
            await first.line.take(.completed(id: id))
            first.end(nil)
            clock.advance(by: .seconds(30))
            second.end(TransportError(.interrupted, "cut"))
            try await eventually { subscription.state.staleSince != nil }
            #expect(subscription.state.staleSince == heard)
        }
    }
}
