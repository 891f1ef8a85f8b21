import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

private let below = #"["rate","author","name"]"#

private func errors(_ code: String?, path: String? = nil, data: String = "null") -> String {
    let path = path.map { #","path":\#($0)"# } ?? ""
    let code = code.map { #","extensions":{"code":"\#($0)"}"# } ?? ""
    return #"{"data":\#(data),"errors":[{"message":"no"\#(path)\#(code)}]}"#
}

private func opened(_ folder: URL, _ server: any GraphQLTransport) throws -> (Store, Partition) {
    let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
    return (store, try store.partition(server: server))
}

@Suite("A mutation takes effect once, and is not set aside where waiting would do", .timeLimit(.minutes(10)))
struct EffectTests {
    @Test(
        "A field below the one that changes something fails: where repeats are not told, nothing is sent again",
        arguments: ["THROTTLED", "INTERNAL_SERVER_ERROR", "BAD"])
    func failedBelow(code: String) async throws {
        let server = ScriptedServer { _, _ in ScriptedServer.body(errors(code, path: below)) }
        let status = try await settled(by: server)
        #expect(status.state == .deadLetter)
        #expect(status.failure?.kind == .outcomeUnknown)
        #expect(server.requests.count == 1)
    }

    @Test(
        "A field below the one that changes something has no time: where repeats are told, the same key is sent again")
    func throttledBelow() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number < 3 ? ScriptedServer.body(errors("THROTTLED", path: below)) : ScriptedServer.done(request)
        }
        #expect(try await settled(by: server).state == .applied)
        #expect(Set(server.requests.map(\.headers)).count == 1)
    }

    @Test("Of two fields one fails and makes all null: the other may have changed something, and nothing is sent again")
    func oneOfTwo() async throws {
        let server = ScriptedServer { _, _ in ScriptedServer.body(errors("THROTTLED", path: #"["second"]"#)) }
        #expect(try await settled(giveStarsToTwo(), by: server).failure?.kind == .outcomeUnknown)
        #expect(server.requests.count == 1)
    }

    @Test("Of two fields one fails: the mutation is applied, and what failed is told, also after a restart")
    func partial() async throws {
        let schema = try Schema(parsing: schemaOfPartialFailure)
        let server = ScriptedServer { _, _ in
            ScriptedServer.firstOfTwo(
                errors: """
                    {"message":"no such recipe","path":["second",0],"extensions":{"code":"BAD"},
                     "locations":[{"line":3,"column":9}]},
                    {"message":"slow"}
                    """)
        }
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: schema)
            let app = try store.partition(server: server)
            let receipt = try await app.enqueue(giveStarsToTwo())
            try await quickRunner(app).drain()
            try store.close()
            let again = try Store.open(at: folder, schema: schema)
            let status = try #require(try again.partition().mutation(receipt.id).status())
            #expect(status.state == .applied)
            #expect(status.errors.map(\.message) == ["no such recipe", "slow"])
            #expect(status.errors.first?.path == ResponsePath([.field("second"), .index(0)]))
            #expect(status.errors.first?.extensions["code"] == .string("BAD"))
            #expect(status.errors.first?.locations.map { [$0.line, $0.column] } == [[3, 9]])
            try again.close()
        }
    }

    @Test("Of the errors of a mutation that took effect in part the first are kept, up to 64 KiB")
    func manyErrors() async throws {
        let error = #"{"message":"\#(String(repeating: "x", count: 30_000))","path":["second"]}"#
        let server = ScriptedServer { _, _ in ScriptedServer.firstOfTwo(errors: "\(error),\(error),\(error)") }
        let status = try await settled(giveStarsToTwo(), by: server, schema: schemaOfPartialFailure)
        #expect(status.state == .applied && status.errors.count == 2)
    }

    @Test(
        "An expired token sets nothing aside, whatever stands beside the status",
        arguments: [
            (401, errors(nil)), (401, errors("BAD")), (401, #"{"data":null}"#), (200, errors("UNAUTHENTICATED")),
        ])
    func expiredToken(status: Int, body: String) async throws {
        let isSignedIn = Flag()
        let server = ScriptedServer { _, request in
            isSignedIn.isSet ? ScriptedServer.done(request) : ScriptedServer.body(body, status: status)
        }
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await app.enqueue(
                (1...5).map { (giveStars("1", $0), MutationOptions(lane: MutationLane("\($0)"))) })
            let runner = quickRunner(app) { $0.maximumLanes = 1 }
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            #expect(server.requests.count == 1)
            isSignedIn.set()
            runner.resume()
            for receipt in receipts { #expect(try await receipt.outcome(within: .seconds(300)).isApplied) }
            running.cancel()
            try await running.value
        }
    }

    @Test("A field that does not know the user stops the queue behind it")
    func notSignedInField() async throws {
        let server = ScriptedServer { _, _ in ScriptedServer.body(errors("UNAUTHENTICATED", path: #"["rate"]"#)) }
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await app.enqueue((1...5).map { (giveStars("1", $0), MutationOptions()) })
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            // The runner waits as soon as the refusal is known, and then notes it.
            try await eventually {
                try receipts.map { receipt in try receipt.status()?.state }
                    == [.deadLetter, .pending, .pending, .pending, .pending]
            }
            #expect(server.requests.count == 1)
            running.cancel()
            try await running.value
        }
    }

    @Test(
        "A mutation waits after a refusal that the program declared to be its server's, and is not set aside",
        arguments: [
            ScriptedServer.status(503), ScriptedServer.body(errors("BUSY", path: #"["rate"]"#)),
            ScriptedServer.body(errors("INTERNAL_SERVER_ERROR"), status: 503),
        ])
    func declared(answer: Result<GraphQLAnswer, TransportError>) async throws {
        let server = ScriptedServer(refusals: ServerRefusals(statuses: [503], errorKinds: ["BUSY"])) {
            number, request in
            number < 4 ? answer : ScriptedServer.done(request)
        }
        #expect(try await settled(by: server).state == .applied)
        #expect(server.requests.count == 5)
    }

    @Test(
        "503 proves nothing: a mutation is sent again only where the server knows repeats, and more often than faults are"
    )
    func unavailable() async throws {
        let unsure = ScriptedServer { _, _ in ScriptedServer.status(503) }
        #expect(try await settled(by: unsure).failure?.kind == .outcomeUnknown)
        #expect(unsure.requests.count == 1)
        let sure = ScriptedServer(ScriptedServer.key) { number, request in
            number < 30 ? ScriptedServer.status(503) : ScriptedServer.done(request)
        }
        #expect(try await settled(by: sure) { $0.maximumFaults = 3 }.state == .applied)
    }

    @Test("A captive portal is no server: what it answers waits", arguments: [511, 407])
    func captivePortal(status: Int) async throws {
        let server = ScriptedServer { number, request in
            number < 30 ? ScriptedServer.status(status) : ScriptedServer.done(request)
        }
        #expect(try await settled(by: server).state == .applied)
    }

    @Test("A deadline that passes before anything has left is waited out")
    func nothingLeft() async throws {
        let server = ScriptedServer { number, request in
            number < 3
                ? .failure(TransportError(number == 0 ? .timedOut : .interrupted, "late", phase: .beforeSending))
                : ScriptedServer.done(request)
        }
        #expect(try await settled(by: server).state == .applied)
    }

    // MARK: Another transport

    /// The first attempt is lost, and the process goes on with another transport.
    private func afterDoubt(
        _ next: ScriptedServer, told first: Idempotency = ScriptedServer.key, check: String? = nil, isInFlight: Bool,
        _ change: (inout MutationRunner.Options) -> Void = { _ in },
        _ body: (MutationReceipt, Partition) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let lost = ScriptedServer(first) { _, _ in .failure(TransportError(.interrupted, "lost")) }
            let (store, app) = try opened(folder, lost)
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(check: check))
            let runner = quickRunner(app) { options in
                options.backoff = Backoff(first: .seconds(1_000), cap: .seconds(1_000))
                options.random = { 0.000_001 }
                options.reached = { if $0 == .received, isInFlight { try? store.close() } }
            }
            let running = Task { try await runner.run() }
            if isInFlight {
                await #expect(throws: LarderError.self) { try await running.value }
            } else {
                try await eventually { try receipt.status()?.failure != nil }
                running.cancel()
                try await running.value
            }
            try store.close()
            let (later, again) = try opened(folder, next)
            try await quickRunner(again, change).drain()
            try await body(again.mutation(receipt.id), again)
            try later.close()
        }
    }

    @Test(
        "A transport that does not tell repeats, or tells them otherwise, does not send a mutation in doubt",
        arguments: [nil, .header(name: "X-Other")] as [Idempotency?], [true, false])
    func otherTransport(_ idempotency: Idempotency?, isInFlight: Bool) async throws {
        let next = ScriptedServer(idempotency) { _, request in ScriptedServer.done(request) }
        try await afterDoubt(next, isInFlight: isInFlight) { receipt, app in
            #expect(next.requests.isEmpty)
            #expect(try receipt.status()?.failure?.kind == .outcomeUnknown)
            // Whoever has it sent all the same answers for that.
            try await app.replayMutation(receipt.id)
            try await quickRunner(app).drain()
            #expect(next.requests.count == 1)
            #expect(try receipt.status()?.state == .applied)
        }
    }

    @Test(
        "Another transport that tells repeats in the same way sends a mutation in doubt again",
        arguments: [true, false])
    func sameTelling(isInFlight: Bool) async throws {
        let next = ScriptedServer(.header(name: "idempotency-key")) { _, request in ScriptedServer.done(request) }
        try await afterDoubt(next, isInFlight: isInFlight) { (receipt, _) throws in
            #expect(try receipt.status()?.state == .applied)
            #expect(next.requests.count == 1)
        }
    }

    @Test("A mutation in doubt is asked about where its transport does not tell repeats", arguments: [true, false])
    func askedAbout(isInFlight: Bool) async throws {
        let next = ScriptedServer { _, request in ScriptedServer.done(request) }
        try await afterDoubt(
            next, check: "had none", isInFlight: isInFlight,
            { options in
                options.checks["had none"] = { _ in .hadNoEffect }
            }
        ) { (receipt, _) throws in
            #expect(try receipt.status()?.state == .applied)
            #expect(next.requests.count == 1)
        }
    }

    // MARK: At once

    @Test("A mutation sent at once took effect: that the cache cannot take its answer is logged, and no failure of it")
    func cacheIsBusy() async throws {
        let log = RecordedLog(from: .warning)
        let locked = Mutex<Int32>(-1)
        defer { locked.withLock { descriptor in if descriptor >= 0 { close(descriptor) } } }
        try await withTemporaryFolder { folder in
            let server = ScriptedServer { _, request in
                // Another process begins to compact while the server is asked.
                let records = folder.appending(path: "records")
                let files = FileManager.default.enumerator(atPath: records.path)
                while let name = files?.nextObject() as? String {
                    guard name.hasSuffix("write.lock") else { continue }
                    let descriptor = open(records.appending(path: name).path, O_RDWR)
                    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { continue }
                    locked.withLock { $0 = descriptor }
                }
                return ScriptedServer.done(request)
            }
            var options = Store.Options()
            options.lockTimeout = .milliseconds(200)
            options.logger = log.logger
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition(server: server)
            try await app.write(recipeList, json: Array(#"{"recipes":[]}"#.utf8))
            let answer = try await app.send(giveStars("1", 5), within: .seconds(60))
            #expect(locked.withLock { $0 } >= 0)
            #expect(answer["rate"]?["rating"]?.double == 5)
            #expect(log.texts.withLock { $0 }.contains("the answer of a mutation could not be stored"))
            locked.withLock { descriptor in
                close(descriptor)
                descriptor = -1
            }
            try store.close()
        }
    }

    // MARK: Stopping

    @Test("A runner that is stopped waits for what is under way, and takes its answer", arguments: [true, false])
    func stopped(tellsRepeats: Bool) async throws {
        let (hasBegun, mayEnd) = (Flag(), Flag())
        let server = ScriptedServer(tellsRepeats ? ScriptedServer.key : nil) { _, request in
            hasBegun.set()
            // A transport that ends with its task.
            while !mayEnd.isSet {
                if Task.isCancelled { return .failure(TransportError(.cancelled, "cancelled")) }
                try? await Task.sleep(for: .milliseconds(2))
            }
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await app.enqueue([5, 4].map { (giveStars("1", $0), MutationOptions()) })
            let running = Task { try await quickRunner(app).run() }
            await hasBegun.wait()
            running.cancel()
            try await Task.sleep(for: .milliseconds(50))
            mayEnd.set()
            try await running.value
            #expect(try receipts[0].status()?.state == .applied)
            #expect(try receipts[1].status()?.state == .pending)
            #expect(server.requests.count == 1)
        }
    }

    // MARK: Pauses

    @Test("A resolver that has a mutation sent again and again is heard so often at most, and with pauses")
    func obstinateResolver() async throws {
        let server = ScriptedServer { _, _ in ScriptedServer.status(409) }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "again"))
            let next = try await app.enqueue(giveStars("1", 4))
            let began = SuspendingClock.now
            try await quickRunner(app) { options in
                options.maximumFaults = 6
                options.backoff = Backoff(first: .milliseconds(50), cap: .milliseconds(50))
                options.random = { 1 }
                options.resolvers["again"] = { .retry(variables: $0.operation.variables) }
            }.drain()
            #expect(try receipt.status()?.failure?.kind == .conflict)
            #expect(server.requests.count == 7)
            #expect(began.duration(to: .now) >= .milliseconds(250))
            #expect(try next.status()?.failure?.kind == .conflict)
        }
    }

    @Test("A check that says each time that there was no effect is not asked without a pause")
    func obstinateCheck() async throws {
        let server = ScriptedServer { number, request in
            number < 5 ? .failure(TransportError(.interrupted, "lost")) : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(check: "none"))
            let began = SuspendingClock.now
            try await quickRunner(app) { options in
                options.backoff = Backoff(first: .milliseconds(50), cap: .milliseconds(50))
                options.random = { 1 }
                options.checks["none"] = { _ in .hadNoEffect }
            }.drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(began.duration(to: .now) >= .milliseconds(250))
        }
    }

    /// A second of the server's is so long here.
    private static let second = Duration.milliseconds(50)

    @Test(
        "A server without time that asks for no pause gets fewer than thirty requests in a minute",
        arguments: [429, 503],
        [1, 200])
    func noPause(status: Int, lanes: Int) async throws {
        let requests = RequestTimes()
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            requests.add()
            return ScriptedServer.status(status, retryAfter: .zero)
        }
        try await withStoreFixture(server) { (app) throws in
            try await app.enqueue(
                (0..<lanes).map { (giveStars("1", $0), MutationOptions(lane: MutationLane("\($0)"))) })
            let runner = quickRunner(app) { $0.backoff = Backoff(first: Self.second, cap: Self.second * 300) }
            let running = Task { try await runner.run() }
            try await eventually { requests.count >= 30 || requests.count > 1 && requests.span >= Self.second * 60 }
            #expect(requests.count(within: Self.second * 60) < 30)
            #expect(try app.mutations(in: [.deadLetter]).isEmpty)
            running.cancel()
            try await running.value
        }
    }

    @Test(
        "A server without time is left alone by all lanes, and where it knows no repeats only the first is set aside"
    )
    func pauseOfAll() async throws {
        let hasTime = Flag()
        let server = ScriptedServer { _, request in
            hasTime.isSet ? ScriptedServer.done(request) : ScriptedServer.status(503, retryAfter: .seconds(3_600))
        }
        try await withClock(server) { app, clock in
            let receipts = try await app.enqueue(
                (0..<50).map { (giveStars("1", $0), MutationOptions(lane: MutationLane("\($0)"))) })
            let runner = quickRunner(app) { $0.maximumLanes = 1 }
            let running = Task { try await runner.run() }
            try await eventually { try !app.mutations(in: [.deadLetter]).isEmpty }
            try await Task.sleep(for: .milliseconds(300))
            #expect(server.requests.count == 1)
            hasTime.set()
            clock.advance(by: .seconds(3_601))
            for receipt in receipts { _ = try await receipt.outcome(within: .seconds(300)) }
            #expect(try app.mutations(in: [.deadLetter]).count == 1)
            #expect(server.requests.count == 50)
            running.cancel()
            try await running.value
        }
    }
}
