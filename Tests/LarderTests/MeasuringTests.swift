import Foundation
import InMemoryTracing
import Larder
import LarderTestSupport
import Metrics
import MetricsTestKit
import Synchronization
import Testing
import Tracing

@Suite("Metrics and spans", .timeLimit(.minutes(5)))
struct MeasuringTests {
    private static let names = GraphQLOperation("query Names { recipes { id title } }")
    private static let answer = #"{"data":{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup"}]}}"#

    /// Runs `body` with a store that measures, and with what it told.
    private func measured(
        _ transport: (any GraphQLTransport)? = nil, provider: (any IdentityProvider)? = nil, clock: TestClock? = nil,
        _ body: (Partition, TestMetrics, InMemoryTracer) async throws -> Void
    ) async throws {
        let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
        var options = Store.Options()
        options.metrics = metrics
        options.tracer = tracer
        options.keys = InMemoryKeyProvider()
        options.identityProvider = { _ in provider }
        if let clock { options.now = { clock.now } }
        try await withOpenStore(transport, options: options) { _, _, app in try await body(app, metrics, tracer) }
    }

    private func count(_ label: String, _ outcome: String? = nil, in metrics: TestMetrics) -> Int {
        metrics.timers(label: label).filter { timer in
            outcome == nil || timer.dimensions.contains { $0 == ("outcome", outcome ?? "") }
        }.map(\.values.count).reduce(0, +)
    }

    @Test("A read that is answered is a hit, and one that is not a miss; both are timed")
    func reads() async throws {
        try await measured { app, metrics, _ in
            #expect(throws: LarderError.self) { try app.read(recipeList) }
            try await app.write(recipeList, json: soupAndBread("Soup"))
            for _ in 0..<2 { _ = try app.read(recipeList) }
            #expect(metrics.counterTotal(label: "larder.read.misses") == 1)
            #expect(metrics.counterTotal(label: "larder.read.hits") == 2)
            #expect(count("larder.read.duration", "success", in: metrics) == 3)
            #expect(count("larder.read.duration", "failure", in: metrics) == 0)
        }
    }

    @Test("A tracer without metrics has spans, and metrics without a tracer have times", arguments: [true, false])
    func alone(isTracer: Bool) async throws {
        let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
        var options = Store.Options()
        if isTracer { options.tracer = tracer } else { options.metrics = metrics }
        try await withOpenStore(ScriptedServer { _ in Self.answer }, options: options) { (_, _, app) throws in
            _ = try await app.fetch(Self.names, policy: .networkOnly)
            #expect(tracer.finishedSpans.map(\.operationName) == (isTracer ? ["Names"] : []))
            #expect(metrics.timers(label: "larder.request.duration").isEmpty == isTracer)
        }
    }

    @Test("A read of an object that was deleted is a miss and no failure")
    func deletedReads() async throws {
        try await measured { app, metrics, _ in
            let card = GraphQLFragment("fragment F on Recipe { title }")
            try await app.write("Recipe:5", card, ["title": "Pie"])
            try await app.remove("Recipe:5", as: .deleted)
            await expectCode(.deleted) { _ = try app.read("Recipe:5", card) }
            #expect(metrics.counterTotal(label: "larder.read.misses") == 1)
            #expect(count("larder.read.duration", "success", in: metrics) == 1)
            #expect(count("larder.read.duration", "failure", in: metrics) == 0)
        }
    }

    @Test("A read that is answered in part is a miss and no failure")
    func partialReads() async throws {
        try await measured { app, metrics, _ in
            try await app.write("Recipe:5", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Pie"])
            let card = GraphQLFragment("fragment F on Recipe { title rating }")
            #expect(try app.read("Recipe:5", card, allowsPartial: true)["title"]?.string == "Pie")
            #expect(metrics.counterTotal(label: "larder.read.misses") == 1)
            #expect(metrics.counterTotal(label: "larder.read.hits") == 0)
            #expect(count("larder.read.duration", "success", in: metrics) == 1)
        }
    }

    @Test("A commit is timed")
    func commits() async throws {
        try await measured { app, metrics, _ in
            let before = count("larder.commit.duration", in: metrics)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(count("larder.commit.duration", in: metrics) == before + 1)
        }
    }

    @Test("Each request has a span with the operation's name, inside the span of its caller, and is timed")
    func requests() async throws {
        let server = ScriptedServer { _ in Self.answer }
        try await measured(server) { app, metrics, tracer in
            let outer = tracer.startAnySpan("screen", context: .topLevel)
            _ = try await ServiceContext.$current.withValue(outer.context) {
                try await app.fetch(Self.names, policy: .networkOnly)
            }
            outer.end()
            let span = try #require(tracer.finishedSpans.first)
            #expect(span.operationName == "Names" && span.kind == .client && span.status == nil)
            #expect(span.attributes.get("graphql.operation.type") == .string("query"))
            #expect(span.parentSpanID == tracer.finishedSpans.last?.spanID)
            // Nothing of variables, documents and headers.
            var attributes: Set<String> = []
            span.attributes.forEach { name, _ in attributes.insert(name) }
            let expected = ["graphql.operation.type", "graphql.operation.name", "http.response.status_code"]
            #expect(attributes == Set(expected))
            let timer = try #require(metrics.timers(label: "larder.request.duration").first)
            #expect(timer.dimensions.contains { $0 == ("kind", "query") })
            #expect(count("larder.request.duration", "success", in: metrics) == 1)
        }
    }

    @Test("The span of an operation without a name is named after its kind")
    func unnamed() async throws {
        let server = ScriptedServer { _ in Self.answer }
        try await measured(server) { app, _, tracer in
            _ = try await app.fetch(GraphQLOperation("{ recipes { id title } }"), policy: .networkOnly)
            let span = try #require(tracer.finishedSpans.first)
            #expect(span.operationName == "query" && span.attributes.get("graphql.operation.name") == nil)
        }
    }

    @Test("The transport is called inside the request's span")
    func contextOfTransport() async throws {
        let isInside = Mutex(false)
        let server = ScriptedServer { _ in
            isInside.withLock { $0 = ServiceContext.current != nil }
            return Self.answer
        }
        try await measured(server) { app, _, tracer in
            _ = try await app.fetch(Self.names, policy: .networkOnly)
            #expect(isInside.withLock { $0 })
            #expect(tracer.finishedSpans.count == 1)
        }
    }

    @Test("A request that fails ends its span as an error, with the code")
    func failedRequests() async throws {
        let server = ScriptedServer { _ in throw TransportError(.unreachable, "There is no server.") }
        try await measured(server) { app, metrics, tracer in
            await #expect(throws: LarderError.self) { try await app.fetch(Self.names, policy: .networkOnly) }
            let span = try #require(tracer.finishedSpans.first)
            #expect(span.status?.code == .error)
            #expect(span.attributes.get("error.type") == .string("transport.unreachable"))
            #expect(tracer.activeSpans.isEmpty)
            #expect(count("larder.request.duration", "failure", in: metrics) == 1)
        }
    }

    private func rate(_ stars: Int64) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($recipe: ID!, $stars: Int!) { rate(input: { recipe: $recipe, stars: $stars }) { id rating } }",
            variables: ["recipe": "r1", "stars": .int(stars)])
    }

    @Test("A runner tells how many mutations wait, and since when; each that it sends is a span")
    func queue() async throws {
        try await measured(ScriptedServer.rating()) { app, metrics, tracer in
            for stars in 1...3 { try await app.enqueue(rate(Int64(stars))) }
            try await MutationRunner(app).drain()
            let depths = try metrics.expectMeter("larder.queue.depth").values
            #expect(depths.max() == 3 && depths.last == 0)
            let ages = try metrics.expectMeter("larder.queue.age").values
            #expect(ages.count == depths.count && ages.last == 0 && ages.allSatisfy { $0 >= 0 })
            let mutations = tracer.finishedSpans.filter {
                $0.attributes.get("graphql.operation.type") == .string("mutation")
            }
            #expect(mutations.count == 3)
        }
    }

    @Test("A runner tells for how long the oldest of the mutations waits that are not sent yet")
    func oldest() async throws {
        let clock = TestClock()
        try await measured(ScriptedServer.rating(), clock: clock) { app, metrics, _ in
            for stars in 1...2 {
                try await app.enqueue(rate(Int64(stars)))
                clock.advance(by: .seconds(60))
            }
            try await MutationRunner(app).drain()
            let ages = try metrics.expectMeter("larder.queue.age").values
            #expect(ages.first == 120 && ages.last == 0)
        }
    }

    @Test("A mutation that was set aside does not wait to be sent")
    func setAside() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await measured(server) { app, metrics, _ in
            try await app.enqueue(rate(1))
            try await MutationRunner(app).drain()
            #expect(try app.mutations().map(\.state) == [.deadLetter])
            let depths = try metrics.expectMeter("larder.queue.depth").values
            #expect(depths.max() == 1 && depths.last == 0)
        }
    }

    @Test("A runner without a network measures no queue, neither its depth nor its age")
    func offline() async throws {
        try await measured(ScriptedServer.rating()) { app, metrics, _ in
            try await app.enqueue(rate(1))
            var options = MutationRunner.Options()
            let network = SwitchedConnectivity()
            network.set(false)
            options.connectivity = network
            let runner = MutationRunner(app, options: options)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .offline }
            running.cancel()
            try await running.value
            #expect(try metrics.expectMeter("larder.queue.depth").values.isEmpty)
            #expect(try metrics.expectMeter("larder.queue.age").values.isEmpty)
        }
    }

    @Test("The identity provider's answers are timed, and so are its failures")
    func refreshes() async throws {
        let provider = InMemoryIdentityProvider(lifetime: .seconds(20))
        try await measured(provider: provider) { app, metrics, _ in
            try await app.session.signIn(provider.signIn("ada"), within: .seconds(300))
            _ = try await app.session.userPoolTokens(within: .seconds(300))
            #expect(count("larder.refresh.duration", "success", in: metrics) == 1)
            provider.behaviour = .unreachable
            _ = try? await app.session.userPoolTokens(within: .seconds(300))
            #expect(count("larder.refresh.duration", "success", in: metrics) == 1)
            #expect(count("larder.refresh.duration", "failure", in: metrics) == 1)
        }
    }

    @Test("Each attempt of a transfer is timed, by which way it goes and how it ends")
    func transfers() async throws {
        try await withTemporaryFolder { folder in
            try await measured { app, metrics, _ in
                let source = folder.appending(path: "source")
                try Data(repeating: 7, count: 100).write(to: source)
                let location = ObjectLocation(bucket: "media", key: "k")
                let runner = TransferRunner(app, storage: MemoryStorage(tellsChecksums: false))
                _ = try await app.transfers.upload(source, to: location)
                try await runner.drain()
                _ = try await app.transfers.download(location, to: folder.appending(path: "copy"))
                _ = try await app.transfers.upload(source, to: .init(bucket: "media", key: "other"))
                try FileManager.default.removeItem(at: source)
                try await runner.drain()
                let told = metrics.timers(label: "larder.transfer.duration").flatMap { timer in
                    timer.values.map { _ in timer.dimensions.map { "\($0.0)=\($0.1)" }.sorted().joined(separator: " ") }
                }
                let expected = ["download outcome=success", "upload outcome=failure", "upload outcome=success"]
                #expect(told.sorted() == expected.map { "kind=\($0)" })
            }
        }
    }

    @Test("A mutation that is under way counts among those that wait")
    func underWay() async throws {
        let isAnswered = Flag()
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            await isAnswered.wait()
            return ScriptedServer.done(request)
        }
        try await measured(server) { app, metrics, _ in
            try await app.enqueue(rate(1))
            let running = Task { try await MutationRunner(app).run() }
            try await eventually { server.requests.count == 1 }
            try await app.enqueue(rate(2))
            try await eventually { try metrics.expectMeter("larder.queue.depth").values.last == 2 }
            isAnswered.set()
            running.cancel()
            try await running.value
        }
    }

    @Test("A read that fails is timed as a failure, and is not counted as a miss")
    func failedReads() async throws {
        let metrics = TestMetrics()
        var options = Store.Options()
        options.metrics = metrics
        try await withOpenStore(options: options) { (_, store, app) throws in
            try store.close()
            await expectCode(.parked) { _ = try app.read(recipeList) }
            #expect(count("larder.read.duration", "failure", in: metrics) == 1)
            #expect(count("larder.read.duration", "success", in: metrics) == 0)
            #expect(metrics.counterTotal(label: "larder.read.misses") == 0)
        }
    }

    @Test("The span of a failed fetch has neither the error's cause, such as headers, nor anything of the request")
    func failureWithCause() async throws {
        struct Refusal: Error { let header = "Authorization: hush" }
        let server = ScriptedServer { _ in
            throw TransportError(.unreachable, "There is no server.", cause: Refusal())
        }
        try await measured(server) { app, _, tracer in
            await #expect(throws: LarderError.self) { try await app.fetch(Self.names, policy: .networkOnly) }
            let span = try #require(tracer.finishedSpans.first)
            #expect(span.status?.message == "There is no server.")
            var attributes: Set<String> = []
            span.attributes.forEach { name, _ in attributes.insert(name) }
            #expect(attributes == ["graphql.operation.type", "graphql.operation.name", "error.type"])
        }
    }

    /// Opens a store in a process whose metrics factory is this one.
    private func opened(_ folder: URL, besides metrics: TestMetrics) throws -> (Store, Partition) {
        try withMetricsFactory(metrics) { () throws in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            return (store, try store.partition())
        }
    }

    @Test("A store without a factory of its own measures nothing, though the process has one")
    func factoryOfProcess() async throws {
        try await withTemporaryFolder { folder in
            let metrics = TestMetrics()
            let (store, app) = try opened(folder, besides: metrics)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            _ = try app.read(recipeList)
            try store.close()
            #expect(metrics.timers(label: "larder.read.duration").isEmpty)
            #expect(metrics.timers(label: "larder.commit.duration").isEmpty)
        }
    }

    @Test("A request that sends a mutation is timed under the kind mutation")
    func timedMutation() async throws {
        try await measured(ScriptedServer.rating()) { app, metrics, _ in
            try await app.enqueue(rate(1))
            try await MutationRunner(app).drain()
            let told = metrics.timers(label: "larder.request.duration").map { timer in
                timer.dimensions.map { "\($0.0)=\($0.1)" }.sorted().joined(separator: " ")
            }
            #expect(Set(told) == ["kind=mutation outcome=success"])
        }
    }

    @Test("Each page of a synchronization is a span with the operation's name, and is timed")
    func synchronization() async throws {
        let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
        var options = Store.Options()
        options.metrics = metrics
        options.tracer = tracer
        let server = SyncServer()
        server.put("a", "a1")
        try await withOpenStore(server.transport, schema: SyncServer.schema, options: options) { _, _, app in
            _ = try await app.sync(SyncServer.sync)
            #expect(tracer.finishedSpans.map(\.operationName) == ["Sync"])
            #expect(count("larder.request.duration", "success", in: metrics) == 1)
        }
    }

    @Test("A request by which a runner looks for the server is a span, and is timed as a query")
    func probes() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            ScriptedServer.found
        } _: { number, request in
            number == 0 ? ScriptedServer.status(500) : ScriptedServer.done(request)
        }
        try await measured(server) { app, metrics, tracer in
            try await app.enqueue(rate(1))
            try await quickRunner(app).drain()
            let probes = tracer.finishedSpans.filter {
                $0.attributes.get("graphql.operation.type") == .string("query")
            }
            #expect(!probes.isEmpty)
            let timers = metrics.timers(label: "larder.request.duration")
            #expect(timers.contains { timer in timer.dimensions.contains { $0 == ("kind", "query") } })
        }
    }

    @Test("An attempt of a transfer that fails and is made again is timed as a failure, before the one that succeeds")
    func repeatedTransfer() async throws {
        try await withTemporaryFolder { folder in
            try await measured { app, metrics, _ in
                let source = folder.appending(path: "source")
                try Data(repeating: 7, count: 100).write(to: source)
                let (storage, failures) = (MemoryStorage(), Countdown(1))
                storage.onCall { call throws(ObjectError) in
                    if case .put = call, failures.take() { throw ObjectError(.interrupted, "cut") }
                }
                var options = TransferRunner.Options()
                options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
                _ = try await app.transfers.upload(source, to: ObjectLocation(bucket: "media", key: "k"))
                try await TransferRunner(app, storage: storage, options: options).drain()
                #expect(count("larder.transfer.duration", "failure", in: metrics) == 1)
                #expect(count("larder.transfer.duration", "success", in: metrics) == 1)
            }
        }
    }

    @Test("A runner that waits for a sign-in does not measure the queue until a user signs in")
    func signedOut() async throws {
        let (mayAnswer, isSignedIn, clock) = (Flag(), Flag(), TestClock())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            await mayAnswer.wait()
            guard isSignedIn.isSet else { return ScriptedServer.status(401) }
            return ScriptedServer.done(request)
        }
        try await measured(server, clock: clock) { app, metrics, _ in
            try await app.enqueue(rate(1))
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            // Once before it sends, and once while it waits for the answer.
            try await eventually { try metrics.expectMeter("larder.queue.age").values.count >= 2 }
            mayAnswer.set()
            try await eventually { runner.state == .waitingForSignIn }
            let count = try metrics.expectMeter("larder.queue.age").values.count
            // Each enqueue notifies the runner, which looks at the queue and must not measure it.
            for stars in 2...6 { try await app.enqueue(rate(Int64(stars))) }
            clock.advance(by: .seconds(60))
            isSignedIn.set()
            runner.resume()
            try await eventually { try metrics.expectMeter("larder.queue.age").values.count > count }
            #expect(try metrics.expectMeter("larder.queue.age").values.dropFirst(count).first == 60)
            running.cancel()
            try await running.value
        }
    }

    @Test("The depth and the age of the queue are those of the runner's own partition, whatever waits in another")
    func queueOfPartition() async throws {
        try await withTemporaryFolder { folder in
            let (metrics, clock) = (TestMetrics(), TestClock())
            var options = Store.Options()
            options.metrics = metrics
            options.now = { clock.now }
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let parked = try await store.switch(to: backend("a")).partition
            try await parked.enqueue(rate(1))
            clock.advance(by: .seconds(60))
            let app = try await store.switch(to: backend("b"), server: ScriptedServer.rating()).partition
            try await app.enqueue(rate(2))
            try await MutationRunner(app).drain()
            let depths = try metrics.expectMeter("larder.queue.depth").values
            #expect(depths.max() == 1 && depths.last == 0)
            let ages = try metrics.expectMeter("larder.queue.age").values
            #expect(!ages.isEmpty && ages.allSatisfy { $0 == 0 })
            try store.close()
        }
    }

    @Test("The attempt of a download that fails is timed as one of a download")
    func failedDownload() async throws {
        try await withTemporaryFolder { folder in
            try await measured { app, metrics, _ in
                let location = ObjectLocation(bucket: "media", key: "none")
                _ = try await app.transfers.download(location, to: folder.appending(path: "copy"))
                try await TransferRunner(app, storage: MemoryStorage()).drain()
                let told = metrics.timers(label: "larder.transfer.duration").map { timer in
                    timer.dimensions.map { "\($0.0)=\($0.1)" }.sorted().joined(separator: " ")
                }
                #expect(Set(told) == ["kind=download outcome=failure"])
            }
        }
    }

    @Test("The identity provider's answers are timed where a guest's credentials are refreshed, too")
    func guestRefreshes() async throws {
        let provider = InMemoryIdentityProvider(lifetime: .seconds(20))
        try await measured(provider: provider) { app, metrics, _ in
            _ = try await app.session.continueAsGuest(within: .seconds(300))
            _ = try await app.session.cloudCredentials(within: .seconds(300))
            #expect(provider.refreshes == 1)
            #expect(count("larder.refresh.duration", "success", in: metrics) == 1)
        }
    }
}
