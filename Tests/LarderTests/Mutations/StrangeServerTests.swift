import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A place where a GraphQL server may be or not; until it is, everything is answered by what stands there instead.
private final class Place: Sendable {
    let isServer = Flag()
    let instead: Result<GraphQLAnswer, TransportError>

    init(_ instead: Result<GraphQLAnswer, TransportError>) { self.instead = instead }

    /// - Parameter searches: How often the server is looked for in vain before it is there.
    func server(_ idempotency: Idempotency? = nil, afterSearches searches: Int = 3) -> ScriptedServer {
        ScriptedServer(
            idempotency,
            search: { [self] number, _ in
                if number >= searches { isServer.set() }
                return isServer.isSet ? ScriptedServer.body(#"{"data":{"__typename":"Query"}}"#) : instead
            }
        ) { [self] _, request in
            isServer.isSet ? ScriptedServer.done(request) : instead
        }
    }
}

private func queue(_ app: Partition, _ count: Int) async throws -> [MutationReceipt] {
    try await app.enqueue((1...count).map { (giveStars("1", $0), MutationOptions(lane: MutationLane("\($0)"))) })
}

private func states(_ receipts: [MutationReceipt]) throws -> [MutationStatus.State?] {
    try receipts.map { receipt in try receipt.status()?.state }
}

@Suite("A server that does not speak GraphQL: the queue waits", .timeLimit(.minutes(10)))
struct StrangeServerTests {
    /// Expects that a server rejects the first of two mutations, and that the second is applied.
    private func expectRejected(
        by server: ScriptedServer, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withStoreFixture(server) { (app) throws in
            let refused = try await app.enqueue(giveStars("1", 5))
            let next = try await app.enqueue(giveStars("1", 4))
            try await quickRunner(app).drain()
            #expect(try refused.status()?.failure?.kind == .rejected, sourceLocation: sourceLocation)
            #expect(try next.status()?.state == .applied, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "A wrong address sets nothing of the queue aside, and all is sent once it is right",
        arguments: [301, 307, 308, 400, 403, 404, 405, 410, 421, 426], [nil, ScriptedServer.key])
    func wrongAddress(status: Int, idempotency: Idempotency?) async throws {
        let server = Place(ScriptedServer.status(status)).server(idempotency)
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await queue(app, 20)
            try await quickRunner(app) { $0.maximumFaults = 1 }.drain()
            #expect(try states(receipts).allSatisfy { $0 == .applied })
        }
    }

    @Test("An endpoint that is none sets nothing of the queue aside")
    func noEndpoint() async throws {
        let server = Place(.failure(TransportError(.unusableRequest, "the endpoint is no URL"))).server()
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await queue(app, 20)
            try await quickRunner(app).drain()
            #expect(try states(receipts).allSatisfy { $0 == .applied })
        }
    }

    @Test("While no GraphQL server answers, the runner and its mutations say so")
    func told() async throws {
        let server = Place(ScriptedServer.status(404)).server(afterSearches: .max)
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .unusableServer }
            try await eventually { try receipt.status()?.failure != nil }
            #expect(try receipt.status()?.state == .pending)
            #expect(try receipt.status()?.failure?.kind == .unusableServer)
            #expect(try receipt.status()?.failure?.message.contains("404") == true)
            running.cancel()
            try await running.value
        }
    }

    @Test(
        "A mutation that the present server refuses by status is refused for its own sake",
        arguments: [
            ScriptedServer.status(403), ScriptedServer.status(404), ScriptedServer.status(413),
            .failure(TransportError(.unusableRequest, "a header holds what HTTP does not allow")),
        ])
    func oneMutation(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = ScriptedServer { number, request in number < 2 ? answer : ScriptedServer.done(request) }
        try await expectRejected(by: server)
    }

    @Test(
        "A page to sign in to a network with may have swallowed the one that met it, and none behind it",
        arguments: [
            .failure(TransportError(.unusableAnswer, "text/html", status: 200)), ScriptedServer.status(302),
            ScriptedServer.body(#"{"login":"please"}"#), ScriptedServer.status(502), ScriptedServer.status(503),
        ] as [Result<GraphQLAnswer, TransportError>])
    func signInPage(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = Place(answer).server(afterSearches: 10)
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await queue(app, 20)
            try await quickRunner(app) { $0.maximumLanes = 1 }.drain()
            let ended = try states(receipts)
            #expect(ended.filter { $0 == .deadLetter }.count == 1)
            #expect(ended.filter { $0 == .applied }.count == 19)
            #expect(server.requests.count == 20)
        }
    }

    @Test(
        "Where repeats are told, what is no server's answer is no fault of a mutation",
        arguments: [
            ScriptedServer.status(502), ScriptedServer.body(#"{"login":"please"}"#),
        ])
    func toldRepeats(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = Place(answer).server(ScriptedServer.key, afterSearches: 10)
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await queue(app, 20)
            // One answer of what stood there may be on its way when the server is found.
            try await quickRunner(app) { $0.maximumFaults = 2 }.drain()
            #expect(try states(receipts).allSatisfy { $0 == .applied })
        }
    }

    @Test(
        "A mutation that the server itself answers with what cannot be used holds its lane up so often at most",
        arguments: [
            .failure(TransportError(.unusableAnswer, "multipart/mixed", status: 200)), ScriptedServer.status(302),
            ScriptedServer.body(#"{"login":"please"}"#),
        ] as [Result<GraphQLAnswer, TransportError>])
    func unusableForEver(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            String(decoding: request.variables, as: UTF8.self).contains("5") ? answer : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let next = try await app.enqueue(giveStars("1", 4))
            let running = Task { try await quickRunner(app) { $0.maximumFaults = 3 }.drain() }
            #expect(try await next.outcome(within: .seconds(60)).isApplied)
            running.cancel()
            try await running.value
            #expect(try receipt.status()?.failure?.kind == .serverFault)
            #expect(server.requests.count == 4)
        }
    }

    @Test("A check tells the outcome of a mutation that a web page answered")
    func askedAbout() async throws {
        let server = ScriptedServer { _, _ in .failure(TransportError(.unusableAnswer, "text/html", status: 200)) }
        let status = try await settled(options: .init(check: "rated"), by: server) {
            $0.checks["rated"] = { _ in .tookEffect(response: nil) }
        }
        #expect(status.state == .applied)
        #expect(server.requests.count == 1)
    }

    @Test("The first part of an incremental delivery counts where it holds all fields that the mutation selects")
    func firstPart() async throws {
        let server = ScriptedServer { _, _ in
            ScriptedServer.body(
                #"""
                {"data":{"rate":{"__typename":"Recipe","id":"1","title":"Soup","rating":5}},
                 "pending":[{"id":"0","path":[]}],"hasNext":true}
                """#)
        }
        #expect(try await settled(by: server).state == .applied)
        #expect(server.requests.count == 1)
    }

    @Test("A server that takes no query but its own is found by the query that the program names")
    func namedProbe() async throws {
        let probe = GraphQLOperation(#"query Ready { recipe(id: "ready") { title } }"#)
        let server = ScriptedServer(search: { _, request in
            request.operationName == "Ready"
                ? ScriptedServer.body(#"{"data":{"recipe":null}}"#) : ScriptedServer.status(403)
        }) { number, request in number == 0 ? ScriptedServer.status(404) : ScriptedServer.done(request) }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let running = Task { try await quickRunner(app) { $0.probe = probe }.drain() }
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            running.cancel()
            try await running.value
            #expect(server.searches == 1)
        }
    }

    @Test(
        "A probe that is no query of the schema is refused before anything is sent",
        arguments: ["mutation { rate(input: {recipe: 1, stars: 1}) { id } }", "{ nothing }", "{"])
    func unusableProbe(text: String) async throws {
        let server = ScriptedServer { _, request in ScriptedServer.done(request) }
        try await withStoreFixture(server) { (app) throws in
            try await app.enqueue(giveStars("1", 5))
            await #expect(throws: LarderError.self) {
                try await quickRunner(app) { $0.probe = GraphQLOperation(text) }.drain()
            }
            #expect(server.requests.isEmpty && server.searches == 0)
        }
    }

    @Test("A server that refuses to say its root type's name is one", arguments: [401, 429])
    func refusedSearch(status: Int) async throws {
        let server = ScriptedServer(search: { _, _ in ScriptedServer.status(status) }) { number, request in
            number < 2 ? ScriptedServer.status(404) : ScriptedServer.done(request)
        }
        try await expectRejected(by: server)
    }

    @Test("A runner that waits for the server ends when it is cancelled, and nothing is lost")
    func cancelled() async throws {
        let server = Place(ScriptedServer.status(404)).server(afterSearches: .max)
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await queue(app, 3)
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { server.searches >= 5 }
            running.cancel()
            try await running.value
            #expect(try states(receipts).allSatisfy { $0 == .pending })
        }
    }
}

@Suite("A check that does not answer is asked again", .timeLimit(.minutes(10)))
struct UnansweredCheckTests {
    private struct Away: Error {}

    private func losing() -> ScriptedServer {
        ScriptedServer { number, request in
            number == 0 ? .failure(TransportError(.interrupted, "lost")) : ScriptedServer.done(request)
        }
    }

    @Test(
        "A check that throws while the network is away is asked again, and nothing is set aside",
        arguments: [true, false])
    func throwing(tookEffect: Bool) async throws {
        let server = losing()
        let asked = Mutex(0)
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(check: "rated"))
            let next = try await app.enqueue(giveStars("1", 4))
            try await quickRunner(app) { options in
                options.checks["rated"] = { _ in
                    let count = asked.withLock { asked in
                        asked += 1
                        return asked
                    }
                    guard count > 5 else { throw Away() }
                    return tookEffect ? .tookEffect(response: nil) : .hadNoEffect
                }
            }.drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(try next.status()?.state == .applied)
            #expect(asked.withLock { $0 } == 6)
            #expect(server.requests.count == (tookEffect ? 2 : 3))
        }
    }

    @Test("A check that never answers is asked so often at most, and the mutation is not sent again")
    func never() async throws {
        let server = losing()
        let asked = Mutex(0)
        let status = try await settled(options: .init(check: "rated"), by: server) { options in
            options.maximumFaults = 4
            options.checks["rated"] = { _ in
                asked.withLock { $0 += 1 }
                throw Away()
            }
        }
        #expect(status.state == .deadLetter)
        #expect(status.failure?.kind == .outcomeUnknown)
        #expect(status.failure?.message.contains("the check rated did not answer") == true)
        #expect(asked.withLock { $0 } == 4)
        #expect(server.requests.count == 1)
    }

    @Test("A check that did not answer is asked again after a pause, and not at once")
    func pause() async throws {
        let asked = Mutex(0)
        try await withStoreFixture(losing()) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(check: "rated"))
            try await runIntoPause(app, receipt) { options in
                options.checks["rated"] = { _ in
                    asked.withLock { $0 += 1 }
                    throw Away()
                }
            }
            #expect(asked.withLock(\.self) == 1)
        }
    }

    @Test("A mutation whose check did not answer is asked about after a restart, and not sent")
    func afterRestart() async throws {
        let server = losing()
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(server: server)
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(check: "rated"))
            let asked = Flag()
            let runner = quickRunner(app) { options in
                options.backoff = Backoff(first: .seconds(1_000), cap: .seconds(1_000))
                options.random = { 0.000_01 }
                options.checks["rated"] = { _ in
                    asked.set()
                    throw Away()
                }
            }
            let running = Task { try await runner.run() }
            try await eventually { asked.isSet }
            running.cancel()
            try await running.value
            try store.close()
            let again = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let later = try again.partition(server: server)
            #expect(try later.mutation(receipt.id).status()?.state == .pending)
            try await quickRunner(later) { $0.checks["rated"] = { _ in .tookEffect(response: nil) } }.drain()
            #expect(try later.mutation(receipt.id).status()?.state == .applied)
            #expect(server.requests.count == 1)
            try again.close()
        }
    }

    @Test("Where the server has spoken and a repeat would tell nothing, one that is asked about is not sent meanwhile")
    func final() async throws {
        let body = #"{"data":null,"errors":[{"message":"no","path":["rate","author"]}]}"#
        let server = ScriptedServer(ScriptedServer.key) { _, _ in ScriptedServer.body(body) }
        let asked = Mutex(0)
        let status = try await settled(options: .init(check: "rated"), by: server) { options in
            options.checks["rated"] = { _ in
                let count = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                guard count > 3 else { throw Away() }
                return .tookEffect(response: nil)
            }
        }
        #expect(status.state == .applied)
        #expect(server.requests.count == 1)
    }
}

@Suite("A resolver that does not answer is asked again", .timeLimit(.minutes(10)))
struct UnansweredResolverTests {
    private struct Away: Error {}

    private func refusing(_ count: Int) -> ScriptedServer {
        ScriptedServer { number, request in number < count ? ScriptedServer.status(409) : ScriptedServer.done(request) }
    }

    @Test("A resolver that throws while the network is away is asked again, and nothing is set aside")
    func throwing() async throws {
        let server = refusing(6)
        let asked = Mutex(0)
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "merge"))
            let next = try await app.enqueue(giveStars("1", 4))
            try await quickRunner(app) { options in
                options.resolvers["merge"] = { _ in
                    let count = asked.withLock { asked in
                        asked += 1
                        return asked
                    }
                    guard count > 5 else { throw Away() }
                    return .retry(variables: ["recipe": "1", "stars": 3])
                }
            }.drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(try next.status()?.state == .applied)
            #expect(asked.withLock { $0 } == 6)
            let sent = server.requests.map { String(decoding: $0.variables, as: UTF8.self) }
            #expect(sent.prefix(6).allSatisfy { $0.contains("5") } && sent[6].contains("3") && sent.count == 8)
        }
    }

    @Test("A resolver that never answers is asked so often at most")
    func never() async throws {
        let server = refusing(4)
        let asked = Mutex(0)
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "merge"))
            let next = try await app.enqueue(giveStars("1", 4))
            try await quickRunner(app) { options in
                options.maximumFaults = 4
                options.resolvers["merge"] = { _ in
                    asked.withLock { $0 += 1 }
                    throw Away()
                }
            }.drain()
            #expect(try receipt.status()?.failure?.kind == .conflict)
            #expect(try receipt.status()?.failure?.message.contains("the resolver merge did not decide") == true)
            #expect(asked.withLock { $0 } == 4)
            #expect(try next.status()?.state == .applied)
            #expect(server.requests.count == 5)
        }
    }
}
