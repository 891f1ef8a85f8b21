import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// How a runner asks whether the server is there, once something else has answered.
@Suite("A server is looked for", .timeLimit(.minutes(10)))
struct SoughtServerTests {
    private static let page = TransportError(.unusableAnswer, "text/html", status: 200)

    /// A server whose first mutation a page answers.
    private func afterPage(
        refusals: ServerRefusals = ServerRefusals(), search: @escaping ScriptedServer.ResultScript
    ) -> ScriptedServer {
        ScriptedServer(
            ScriptedServer.key, refusals: refusals, search: search,
            { number, request in number == 0 ? .failure(Self.page) : ScriptedServer.done(request) })
    }

    /// Wakes the runner five times, and waits each time until it has looked at the network.
    private func haveRunnerLook(
        in app: Partition, _ connectivity: CountedConnectivity, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        for _ in 0..<5 {
            let before = connectivity.looks
            app.core.operationsStore.changeSignal.notify()
            try await eventually(fileID: sourceLocation.fileID, line: sourceLocation.line) {
                connectivity.looks > before
            }
        }
    }

    /// Runs a runner that meets a page, until it has looked for the server `searches` times.
    private func looking(
        _ searches: Int, at server: ScriptedServer, in app: Partition,
        _ change: (inout MutationRunner.Options) -> Void = { _ in }, _ body: () async throws -> Void
    ) async throws {
        try await app.enqueue(giveStars("1", 1))
        let running = Task { [runner = quickRunner(app, change)] in try await runner.run() }
        try await eventually { server.searches >= searches }
        try await body()
        running.cancel()
        try await running.value
    }

    @Test(
        "What answers the probe is left alone for as long as it asks",
        arguments: [
            ScriptedServer.status(503, retryAfter: .seconds(3600)),
            ScriptedServer.body(#"{"login":"please"}"#, retryAfter: .seconds(3600)),
            // Errors that are none make no GraphQL response.
            ScriptedServer.body(#"{"errors":[]}"#, retryAfter: .seconds(3600)),
        ])
    func patience(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = ScriptedServer(ScriptedServer.key, search: { _, _ in answer }, { _, _ in .failure(Self.page) })
        try await withStoreFixture(server) { app in
            let connectivity = CountedConnectivity()
            try await looking(1, at: server, in: app, { $0.connectivity = connectivity }) {
                try await connectivity.someLooks()
                #expect(server.searches == 1)
            }
        }
    }

    @Test("The probe bears the headers that the runner's requests have")
    func headers() async throws {
        let (hasHeader, hasNone) = (Flag(), Flag())
        let server = afterPage { _, request in
            (request.headers.contains { $0.name == "x-tenant" && $0.value == "7" } ? hasHeader : hasNone).set()
            return ScriptedServer.found
        }
        try await settled(by: server) { $0.headers = [.init(name: "x-tenant", value: "7")] }
        #expect(hasHeader.isSet && !hasNone.isSet)
    }

    @Test("A refusal that the transport declares for its server shows that the server is there")
    func declaredRefusal() async throws {
        let isFirst = Countdown(1)
        let server = afterPage(refusals: ServerRefusals(statuses: [503])) { _, _ in
            isFirst.take() ? ScriptedServer.status(503) : ScriptedServer.found
        }
        #expect(try await settled(by: server).state == .applied)
        #expect(server.searches == 1)
    }

    @Test("A GraphQL response that has errors and no data shows that the server is there")
    func errorsAlone() async throws {
        let server = afterPage { _, _ in ScriptedServer.body(#"{"errors":[{"message":"no"}]}"#) }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 1))
            let running = Task { [runner = quickRunner(app)] in try await runner.run() }
            defer { running.cancel() }
            #expect(try await receipt.outcome(within: .seconds(20)).isApplied)
            #expect(server.searches == 1)
            running.cancel()
            try await running.value
        }
    }

    @Test("The status of a proxy or a captive network does not show that the server is up", arguments: [407, 511])
    func between(status: Int) async throws {
        let server = afterPage { number, _ in number < 2 ? ScriptedServer.status(status) : ScriptedServer.found }
        #expect(try await settled(by: server).state == .applied)
        #expect(server.searches == 3)
    }

    @Test(
        "A probe that is answered by a server's own status shows that the server is there",
        arguments: [401, 409, 412, 425, 429])
    func ownStatus(status: Int) async throws {
        let server = afterPage { number, _ in number == 0 ? ScriptedServer.status(status) : ScriptedServer.found }
        #expect(try await settled(by: server).state == .applied)
        #expect(server.searches == 1)
    }

    @Test("The probe asks for a type's name and nothing else, unless the program names another query")
    func defaultProbe() {
        #expect(RunOptions().mutations.probe.document == "{ __typename }")
    }

    @Test("The pauses between probes grow for as long as no server answers")
    func growingPauses() async throws {
        let server = ScriptedServer(
            ScriptedServer.key, search: { _, _ in .failure(Self.page) }, { _, _ in .failure(Self.page) })
        let connectivity = CountedConnectivity()
        try await withClock(server) { app, clock in
            try await app.enqueue(giveStars("1", 1))
            let runner = quickRunner(app) { options in
                options.connectivity = connectivity
                options.backoff = Backoff(first: .seconds(10), cap: .seconds(3600))
                options.random = { 1 }
            }
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .unusableServer }
            clock.advance(by: .seconds(10))
            try await eventually { server.searches == 2 }
            try await haveRunnerLook(in: app, connectivity)
            clock.advance(by: .seconds(10))
            try await haveRunnerLook(in: app, connectivity)
            #expect(server.searches == 2)
            clock.advance(by: .seconds(10))
            try await eventually { server.searches >= 3 }
            running.cancel()
            try await running.value
        }
    }

    @Test(
        "A runner does not repeat a probe before the time is over for which the answer to it asks",
        arguments: [
            .failure(TransportError(.status, "soon", status: 503, retryAfter: .seconds(3600))),
            ScriptedServer.body(#"{"login":"please"}"#, retryAfter: .seconds(3600)),
        ] as [Result<GraphQLAnswer, TransportError>])
    func askedForPatience(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = ScriptedServer(
            ScriptedServer.key, search: { _, _ in answer }, { _, _ in .failure(Self.page) })
        let connectivity = CountedConnectivity()
        try await withClock(server) { app, clock in
            try await app.enqueue(giveStars("1", 1))
            let runner = quickRunner(app) { $0.connectivity = connectivity }
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .unusableServer }
            clock.advance(by: .seconds(3590))
            try await haveRunnerLook(in: app, connectivity)
            #expect(server.searches == 1)
            clock.advance(by: .seconds(20))
            try await eventually { server.searches >= 2 }
            running.cancel()
            try await running.value
        }
    }

    @Test("A refusal by a status does not count when the probe after it finds no server")
    func refusedElsewhere() async throws {
        let server = ScriptedServer(
            ScriptedServer.key,
            search: { number, _ in number == 0 ? .failure(Self.page) : ScriptedServer.found },
            { number, request in number < 2 ? ScriptedServer.status(404) : ScriptedServer.done(request) })
        #expect(try await settled(by: server).state == .applied)
        #expect(server.requests.count == 3)
    }

    @Test("A probe has the same timeout as the runner's other requests")
    func timeout() async throws {
        let server = ScriptedServer(ScriptedServer.key, search: nil) { _, number, request in
            if request.kind == .query { return try ScriptedServer.found.get() }
            if number == 0 { throw Self.page }
            return try ScriptedServer.done(request).get()
        }
        try await withStoreFixture(server) { app in
            try await app.enqueue(giveStars("1", 1))
            let began = SuspendingClock.now
            try await quickRunner(app) { $0.timeout = .seconds(900) }.drain()
            #expect(server.requests.map(\.kind) == [.mutation, .query, .mutation])
            let deadline = try #require(server.deadlines.dropFirst().first)
            #expect(deadline >= began + .seconds(900) && deadline <= .now + .seconds(900))
        }
    }

    @Test(
        "A GraphQL response with errors rejects its mutation whatever its status, and no probe is sent",
        arguments: [400, 404])
    func refusedInGraphQL(status: Int) async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number == 0
                ? ScriptedServer.body(#"{"errors":[{"message":"no such recipe"}]}"#, status: status)
                : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let refused = try await app.enqueue(giveStars("9", 1))
            let other = try await app.enqueue(giveStars("1", 4))
            try await quickRunner(app).drain()
            #expect(try refused.status()?.failure?.kind == .rejected)
            #expect(try other.status()?.state == .applied)
            #expect(server.requests.count == 2 && server.searches == 0)
        }
    }

    @Test(
        "The runner sends no probe after a status by which a server shows that it is there",
        arguments: [409, 412, 425, 429])
    func shownByStatus(status: Int) async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number == 0 ? ScriptedServer.status(status) : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            try await app.enqueue(giveStars("9", 1))
            let other = try await app.enqueue(giveStars("1", 4))
            try await quickRunner(app).drain()
            #expect(try other.status()?.state == .applied)
            #expect(server.searches == 0)
        }
    }

    @Test("A server that is missing is looked for no more where nothing is left to send")
    func nothingLeft() async throws {
        let server = ScriptedServer(
            ScriptedServer.key, search: { _, _ in .failure(Self.page) }, { _, _ in ScriptedServer.status(404) })
        let connectivity = CountedConnectivity()
        try await withClock(server) { app, clock in
            let receipt = try await app.enqueue(giveStars("1", 1), options: .init(expires: clock.now + 10))
            let runner = quickRunner(app) { $0.connectivity = connectivity }
            let running = Task { try await runner.run() }
            try await eventually { server.searches == 1 }
            try await connectivity.someLooks()
            // The pause after the search is over as well.
            clock.advance(by: .seconds(20))
            try await eventually { try receipt.status()?.isEnded == true }
            try await haveRunnerLook(in: app, connectivity)
            #expect(server.searches == 1)
            running.cancel()
            try await running.value
        }
    }

    @Test("That no GraphQL server answers is logged once, and not at each look")
    func loggedOnce() async throws {
        let server = ScriptedServer(
            ScriptedServer.key, search: { _, _ in .failure(Self.page) }, { _, _ in .failure(Self.page) })
        let log = RecordedLog(from: .warning)
        var options = Store.Options()
        options.logger = log.logger
        try await withOpenStore(server, options: options) { _, _, app in
            try await looking(4, at: server, in: app) {}
            #expect(log.texts.withLock { $0.filter { $0.contains("no GraphQL server") }.count } == 1)
        }
    }

    @Test("A runner that has found the server says that it works, and no longer that there is none")
    func foundAgain() async throws {
        let (isThere, isAskedAgain, mayAnswer) = (Flag(), Flag(), Flag())
        let server = ScriptedServer(
            ScriptedServer.key, search: { _, _ in isThere.isSet ? ScriptedServer.found : .failure(Self.page) },
            { _, request in
                guard isThere.isSet else { return .failure(Self.page) }
                isAskedAgain.set()
                await mayAnswer.wait()
                return ScriptedServer.done(request)
            })
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 1))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .unusableServer }
            isThere.set()
            await isAskedAgain.wait()
            #expect(runner.state == .running)
            mayAnswer.set()
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            running.cancel()
            try await running.value
        }
    }
}
