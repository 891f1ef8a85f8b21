import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Synchronization
import Testing

@Suite(
    "Subscriptions of GraphQL servers that are not ours",
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"), .timeLimit(.minutes(10)))
struct SubscriptionTests {
    static let kinds = ["strawberry", "ariadne"]
    private static let carriers: [HTTPTransport.SubscriptionOptions.Carrier] = [.webSocket, .multipart]

    @Test("An event is in the cache when its reader is told, and wakes a watcher", arguments: kinds)
    func tells(_ kind: String) async throws {
        try await EventServer.run(kind) { server in
            let subscription = try await server.subscribed()
            #expect(server.text("1") == "one")
            var watched = try server.app.watch(EventServer.items).makeAsyncIterator()
            _ = await watched.next()
            try await server.order(#"{"set": {"1": "uno"}}"#)
            let event = await subscription.nextData()
            #expect(event?["changed"]?["text"]?.string == "uno")
            #expect(server.text("1") == "uno")
            #expect(await watched.next()?.response?["items"]?[0]?["text"]?.string == "uno")
        }
    }

    @Test("What changed while the connection was down is caught up, and the state says so", arguments: kinds)
    func catchesUp(_ kind: String) async throws {
        try await EventServer.run(kind) { server in
            let subscription = try await server.subscribed()
            try await server.cut(
                subscription, missing: #"{"set": {"1": "first", "2": "second"}}"#, #"{"set": {"1": "third"}}"#)
            #expect(server.text("1") == "third")
            #expect(server.text("2") == "second")
        }
    }

    @Test("Equal subscriptions share one at the server, which ends with the last of them", arguments: kinds)
    func shares(_ kind: String) async throws {
        try await EventServer.run(kind) { server in
            let options = SubscriptionOptions(catchUp: EventServer.items)
            do {
                let first = try await server.app.subscribe(EventServer.changed, options: options)
                let second = try await server.app.subscribe(EventServer.changed, options: options)
                await first.wait(for: .live)
                await second.wait(for: .live)
                try await server.order(#"{"set": {"1": "both"}}"#)
                #expect(await first.nextData() != nil)
                #expect(await second.nextData() != nil)
                #expect(try await server.order().begun == 1)
            }
            try await eventually { try await server.order().subscriptions <= 0 }
        }
    }

    @Test("After its lifetime another connection takes a connection's place; the state stays live", arguments: kinds)
    func replaces(_ kind: String) async throws {
        try await EventServer.run(kind, { $0.subscriptions.lifetime = .seconds(1) }) { server in
            let subscription = try await server.subscribed()
            let deadline = SuspendingClock.now + .seconds(60)
            while try await server.order().begun < 2 {
                try #require(.now < deadline, "no other connection")
                try await Task.sleep(for: .milliseconds(5))
            }
            try await server.order(#"{"set": {"1": "uno"}}"#)
            for await event in subscription {
                if case .data = event { break }
                if case .state(let state) = event { #expect(state.phase == .live && state.staleSince == nil) }
            }
            #expect(server.text("1") == "uno")
        }
    }

    @Test("A subscription that the server cannot carry out ends with its errors", arguments: kinds)
    func fails(_ kind: String) async throws {
        try await EventServer.run(kind) { server in
            let subscription = try await server.app.subscribe(GraphQLOperation("subscription { broken { id } }"))
            // Strawberry sends an event with errors and ends the subscription then, Ariadne ends it with errors.
            let told = await subscription.wait(for: .ended).contains { event in
                if case .data(let response) = event { !response.errors.isEmpty } else { false }
            }
            #expect(told || subscription.state.error?.errors.isEmpty == false)
        }
    }

    @Test("A subscription that ends at the server ends here, without an error", arguments: kinds)
    func completes(_ kind: String) async throws {
        try await EventServer.run(kind) { server in
            let subscription = try await server.subscribed()
            try await server.order(#"{"complete": true}"#)
            await subscription.wait(for: .ended)
            #expect(subscription.state.error == nil)
        }
    }

    @Test("A parked partition's subscriptions end, and the server is told", arguments: kinds)
    func parks(_ kind: String) async throws {
        try await EventServer.run(kind) { server in
            let subscription = try await server.subscribed()
            try server.store.close()
            await subscription.wait(for: .ended)
            try await eventually { try await server.order().subscriptions <= 0 }
        }
    }

    /// The error of the first state that has one; nil where the subscription is live before.
    private func error(_ subscription: Subscription) async -> LarderError? {
        for await event in subscription {
            guard case .state(let state) = event, state.error != nil || state.phase == .live else { continue }
            return state.error
        }
        return nil
    }

    @Test("Each connection introduces the program with the payload of the options", arguments: kinds, [true, false])
    func introduces(_ kind: String, isTaken: Bool) async throws {
        let asked = Mutex(0)
        try await EventServer.run(kind) { options in
            options.subscriptions.payload = {
                asked.withLock { $0 += 1 }
                return ["token": isTaken ? "hush" : "loud"]
            }
        } _: { server in
            try await server.order(#"{"token": "hush"}"#)
            let subscription = try await server.app.subscribe(EventServer.changed)
            let code = await error(subscription)?.code
            // Ariadne does not say that it is the proof which it refuses.
            #expect(isTaken ? code == nil : code == .transportNotSignedIn || kind == "ariadne" && code != nil)
            guard isTaken else { return }
            let count = asked.withLock(\.self)
            try await server.order(#"{"cut": true}"#)
            await subscription.wait(for: .connecting)
            await subscription.wait(for: .live)
            #expect(asked.withLock(\.self) > count)
        }
    }

    @Test("A query that begins after a subscription has begun on a WebSocket joins none that began before it")
    func asksAgainAfterStart() async throws {
        let script = #"""
            {"subprotocol": "graphql-transport-ws", "script": [
             {"wait": 1}, {"text": "{\"type\":\"connection_ack\"}"}, {"wait": 2},
             {"text": "{\"type\":\"next\",\"id\":\"ID\",\"payload\":{\"data\":null}}"}]}
            """#
        let gate = Gate()
        try await ForeignServer.run("frames.py", script) { frames in
            try await withServer(options: options { $0.subscriptions.url = frames.url }) { _ in
                .json(nameAnswer).gated(gate)
            } _: { server, transport in
                try await expectAskedAgainAfterStart(transport, at: server, gate, requests: 2)
            }
        }
    }

    @Test(
        "Subscriptions alone go to the place that the options have for them", arguments: carriers)
    func place(_ carrier: HTTPTransport.SubscriptionOptions.Carrier) async throws {
        // No server listens there.
        let place = URL(string: "http://127.0.0.1:1/graphql")
        try await EventServer.run("strawberry") { options in
            (options.subscriptions.carrier, options.subscriptions.url) = (carrier, place)
        } _: { server in
            let subscription = try await server.app.subscribe(EventServer.changed)
            #expect(await error(subscription)?.code == .transportUnreachable)
            let answer = try await server.app.fetch(EventServer.items, policy: .networkOnly)
            #expect(answer["items"]?.count == 1)
        }
    }

    @Test("A multipart answer in which events come is not given up, though it lasts longer than a silence may")
    func outlastsSilence() async throws {
        try await EventServer.run("strawberry") { options in
            (options.subscriptions.carrier, options.subscriptions.silence) = (.multipart, .seconds(6))
        } _: { server in
            let subscription = try await server.subscribed(catchUp: nil)
            for number in 1...4 {
                try await Task.sleep(for: .seconds(2))
                try await server.order(#"{"set": {"1": "\#(number)"}}"#)
                for await event in subscription {
                    if case .data = event { break }
                    if case .state(let state) = event { try #require(state.phase == .live) }
                }
            }
            #expect(try await server.order().begun == 1)
        }
    }

    @Test(
        "A connection on which nothing comes is given up after the time of the options", arguments: carriers)
    func silent(_ carrier: HTTPTransport.SubscriptionOptions.Carrier) async throws {
        // By multipart, Strawberry is heard of every five seconds.
        let silence = carrier == .webSocket ? Duration.milliseconds(500) : .seconds(7)
        try await EventServer.run("strawberry") { options in
            (options.subscriptions.carrier, options.subscriptions.silence) = (carrier, silence)
            options.subscriptions.pacing.opening = .seconds(120)
        } _: { server in
            let subscription = try await server.subscribed(catchUp: nil)
            let begun = SuspendingClock.now
            try await server.order(#"{"hold": true}"#)
            let told = await subscription.wait(for: .connecting)
            try requireNear(begun + silence)
            guard case .state(let state)? = told.last else { throw Untold() }
            #expect(state.error?.code == .transportTimedOut)
        }
    }

    private struct Untold: Error {}
}
