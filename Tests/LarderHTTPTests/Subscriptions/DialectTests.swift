import Larder
import LarderRecords
import LarderTestSupport
import Testing

@testable import LarderHTTP

@Suite("Messages of graphql-transport-ws")
struct DialectTests {
    private let dialect = GraphQLTransportWS(openedBy: .now) { nil }

    private func request(named name: String?) -> GraphQLRequest {
        GraphQLRequest(
            kind: .subscription, operationName: name, document: "subscription Watch { changed }",
            documentHash: GraphQLRequest.someHash, variables: Array(#"{"a":1}"#.utf8))
    }

    private func start(_ id: String, _ name: String? = nil) -> SubscriptionLine.Command {
        .start(id: id, request(named: name))
    }

    private func reaction(_ text: String) throws -> DialectReaction {
        try dialect.reaction(to: JSONMembers(Array(text.utf8)))
    }

    /// Whether a subscription was acknowledged by a message.
    private func isStart(_ reaction: DialectReaction) -> Bool {
        reaction.messages.contains { if case .started("1") = $0 { true } else { false } }
    }

    @Test("A start names its operation where that has a name", arguments: ["Watch", nil])
    func start(name: String?) throws {
        let message = try #require(dialect.messages(for: [start("1", name)]).first)
        let payload = try #require(JSONValue(message)?["payload"]?.object)
        #expect(payload["operationName"]?.string == name)
        #expect(payload["query"] == "subscription Watch { changed }")
        #expect(payload["variables"] == ["a": 1])
    }

    @Test("The first event acknowledges a start that was not yet acknowledged, and no later one does")
    func firstEvent() throws {
        _ = dialect.messages(for: [start("1")])
        let event = #"{"type":"next","id":"1","payload":{"data":{"changed":1}}}"#
        #expect(try isStart(reaction(event)))
        _ = try reaction(#"{"type":"pong","payload":{"larder":"1"}}"#)
        #expect(try !isStart(reaction(event)))
    }

    @Test("A message may write its letters as JSON allows")
    func escapes() throws {
        _ = dialect.messages(for: [start("1")])
        #expect(try isStart(reaction(#"{"type":"ne\u0078t","id":"\u0031","payload":{"data":null}}"#)))
    }

    @Test("A payload that does not come is waited for until the deadline of the opening")
    func latePayload() async throws {
        let error = try await requireEnd { deadline in
            let dialect = GraphQLTransportWS(openedBy: deadline) {
                try await Task.sleep(for: .seconds(30))
                return nil
            }
            _ = try await dialect.greeting()
        }
        #expect((error as? TransportError)?.code == .timedOut)
    }

    @Test("A payload that JSON cannot hold is a fault of the request")
    func unusablePayload() async throws {
        let dialect = GraphQLTransportWS(openedBy: .now + .ample) { ["x": .float(.nan)] }
        let error = await #expect(throws: TransportError.self) { _ = try await dialect.greeting() }
        #expect(error?.code == .unusableRequest)
    }

    @Test(
        "A null in an event is a value, unless the options say otherwise",
        arguments: [(nil, .trust), (.ignore, .ignore), (.fetch, .fetch)] as [(NullsInEvents?, NullsInEvents)])
    func nulls(said: NullsInEvents?, expected: NullsInEvents) async throws {
        try await withServer(options: options { $0.subscriptions.nulls = said }) { _ in
            .cut
        } _: { _, transport in
            #expect(transport.nullsInEvents == expected)
        }
    }

    @Test("A ping of the protocol is answered")
    func ping() throws {
        #expect(try reaction(#"{"type":"ping"}"#).replies.compactMap { JSONValue($0) } == [["type": "pong"]])
    }

    /// The ids of the subscriptions that a message acknowledges.
    private func starts(_ reaction: DialectReaction) -> [String] {
        reaction.messages.compactMap { if case .started(let id) = $0 { id } else { nil } }
    }

    @Test("The second pong without what the ping said acknowledges a start; one that says something else does not")
    func pongs() throws {
        _ = dialect.messages(for: [start("1")])
        for text in [
            #"{"type":"pong","payload":{}}"#, #"{"type":"pong","payload":{"x":1}}"#,
            #"{"type":"pong","payload":{"larder":7}}"#, #"{"type":"pong","payload":{"larder":"2"}}"#,
        ] {
            #expect(try !isStart(reaction(text)), "\(text)")
        }
        #expect(try isStart(reaction(#"{"type":"pong","payload":{}}"#)))
    }

    @Test("A pong that repeats a ping's payload acknowledges its start alone, and no other ping is sent")
    func repeatedPong() throws {
        for id in ["1", "2"] { #expect(dialect.messages(for: [start(id)]).count == 2) }
        let reaction = try reaction(#"{"type":"pong","payload":{"larder":"2"}}"#)
        #expect(starts(reaction) == ["2"])
        #expect(reaction.replies.isEmpty)
        // The server repeats payloads: a pong without one is unasked.
        for _ in 0..<3 { #expect(try starts(self.reaction(#"{"type":"pong"}"#)).isEmpty) }
    }

    @Test("One ping follows what is sent together, and its answer acknowledges all of that; an event its own start")
    func together() throws {
        let messages = dialect.messages(for: [start("1"), start("2"), .stop(id: "3"), start("4")])
        let types = messages.compactMap { JSONValue($0)?["type"]?.string }
        #expect(types == ["subscribe", "subscribe", "complete", "subscribe", "ping"])
        #expect(dialect.messages(for: []).isEmpty)
        #expect(try starts(reaction(#"{"type":"next","id":"2","payload":{"data":{"changed":1}}}"#)) == ["2"])
        let key = try #require(messages.last.flatMap { JSONValue($0)?["payload"]?["larder"]?.string })
        let reaction = try reaction(#"{"type":"pong","payload":{"larder":"\#(key)"}}"#)
        #expect(starts(reaction) == ["1", "2", "4"])
        #expect(reaction.messages.contains { if case .completed("3") = $0 { true } else { false } })
    }

    @Test("A pong without a payload counts for the ping before, and one more ping follows the last")
    func silentPongs() throws {
        let pong = #"{"type":"pong"}"#
        // Unasked pongs count for nothing.
        for _ in 0..<2 { #expect(try starts(reaction(pong)).isEmpty) }
        for id in 1...3 { _ = dialect.messages(for: [start("\(id)")]) }
        for expected in [[], ["1"]] {
            let reaction = try reaction(pong)
            #expect(starts(reaction) == expected && reaction.replies.isEmpty)
        }
        let third = try reaction(pong)
        #expect(starts(third) == ["2"])
        #expect(third.replies.compactMap { JSONValue($0)?["type"]?.string } == ["ping"])
        // Its answer is counted; a server that repeats payloads after all acknowledges nothing by it.
        let key = third.replies.first.flatMap { JSONValue($0)?["payload"]?["larder"]?.string }
        #expect(try key.map { try starts(self.reaction(#"{"type":"pong","payload":{"larder":"\#($0)"}}"#)) } == [])
        let fourth = try reaction(pong)
        #expect(starts(fourth) == ["3"] && fourth.replies.isEmpty)
        // All is answered: what comes then begins to count anew.
        #expect(try starts(reaction(pong)).isEmpty)
        _ = dialect.messages(for: [start("4")])
        #expect(try starts(reaction(pong)).isEmpty)
        #expect(try starts(reaction(pong)) == ["4"])
    }

    @Test("An end is confirmed by the answer to its ping")
    func confirmedEnd() throws {
        let messages = dialect.messages(for: [.stop(id: "1")])
        #expect(messages.compactMap { JSONValue($0)?["type"]?.string } == ["complete", "ping"])
        let key = try #require(JSONValue(messages[1])?["payload"]?["larder"]?.string)
        let reaction = try reaction(#"{"type":"pong","payload":{"larder":"\#(key)"}}"#)
        #expect(reaction.messages.contains { if case .completed("1") = $0 { true } else { false } })
    }

    @Test("A server may be silent for a minute, unless the program says otherwise")
    func defaultSilence() {
        #expect(HTTPTransport.Options().subscriptions.silence == .seconds(60))
    }
}
