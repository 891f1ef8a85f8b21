import Foundation
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// What one lane learns of the server or the network holds up all others, at once.
@Suite("Lanes heed what another has learnt", .timeLimit(.minutes(10)))
struct LanePauseTests {
    /// Queues two mutations of the lane `slow` and one of `other`. Expects that `slow` does not send its second mutation
    /// once the server has answered its first, which the server does after `isAnswered` is set.
    ///
    /// - Parameter learn: Brings about what holds up all lanes, and waits until the runner knows it.
    private func expectHeldUp(
        _ server: ScriptedServer, _ isAnswered: Flag, sourceLocation: SourceLocation = #_sourceLocation,
        _ change: (inout MutationRunner.Options) -> Void = { _ in },
        learn: (_ other: MutationReceipt, MutationRunner) async throws -> Void
    ) async throws {
        try await withStoreFixture(server) { app in
            let slow = [try await app.queueStars("slow", 1), try await app.queueStars("slow", 2)]
            let other = try await app.queueStars("other", 3)
            let runner = quickRunner(app, change)
            let running = Task { try await runner.run() }
            try await learn(other, runner)
            isAnswered.set()
            try await eventually(fileID: sourceLocation.fileID, line: sourceLocation.line) {
                try slow[0].status()?.state == .applied
            }
            #expect(try slow[1].status()?.state == .pending, sourceLocation: sourceLocation)
            #expect(server.requests.count == 2, sourceLocation: sourceLocation)
            running.cancel()
            try await running.value
        }
    }

    private func recipe(_ request: GraphQLRequest) -> String? { request.values["recipe"] as? String }

    @Test("A lane that is answered while the server asks to be left alone does not send its next mutation")
    func pause() async throws {
        let (isAsked, isAnswered) = (Flag(), Flag())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            guard recipe(request) == "slow" else {
                // What is asked after the pause has begun would end it when it is answered.
                await isAsked.wait()
                return .failure(TransportError(.status, "slow down", status: 429, retryAfter: .seconds(3600)))
            }
            isAsked.set()
            await isAnswered.wait()
            return ScriptedServer.done(request)
        }
        try await expectHeldUp(server, isAnswered) { other, _ in
            try await eventually { try server.requests.count == 2 && other.status()?.failure != nil }
        }
    }

    @Test("A server whose answer says that it has no time is left alone for as long as the answer says")
    func askedInAnswer() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            ScriptedServer.body(
                #"{"data":null,"errors":[{"message":"slow down","extensions":{"code":"THROTTLED"}}]}"#,
                retryAfter: .seconds(3600))
        }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await runIntoPause(app, receipt) {
                $0.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test("A lane that is answered after the network has gone does not send its next mutation")
    func network() async throws {
        let isAnswered = Flag()
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            if recipe(request) == "slow" { await isAnswered.wait() }
            return ScriptedServer.done(request)
        }
        let network = SwitchedConnectivity()
        try await expectHeldUp(server, isAnswered, { $0.connectivity = network }) { other, _ in
            try await eventually { try server.requests.count == 2 && other.status()?.state == .applied }
            network.set(false)
        }
    }

    @Test("A lane that is answered after another was told that no user is signed in does not send its next mutation")
    func signedOut() async throws {
        let isAnswered = Flag()
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            guard recipe(request) == "slow" else {
                return .failure(TransportError(.status, "who?", status: 401))
            }
            await isAnswered.wait()
            return ScriptedServer.done(request)
        }
        try await expectHeldUp(server, isAnswered) { _, runner in
            try await eventually { server.requests.count == 2 && runner.state == .waitingForSignIn }
        }
    }

    @Test(
        "An answer by which the server may have been another's is no end of its pause, nor is an exchange without one",
        arguments: [
            ScriptedServer.status(404), .failure(.away), .failure(TransportError(.interrupted, "cut")),
        ])
    func oneByOne(second: Result<GraphQLAnswer, TransportError>) async throws {
        let (refusals, seconds, isLetGo) = (Countdown(1), Countdown(1), Flag())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            if refusals.take() {
                return .failure(TransportError(.status, "slow down", status: 429))
            }
            if seconds.take() { return second }
            await isLetGo.wait()
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let first = try await app.enqueue(giveStars("first", 1), options: .init(lane: "first"))
            let connectivity = CountedConnectivity()
            let runner = quickRunner(app) { $0.connectivity = connectivity }
            let running = Task { try await runner.run() }
            try await eventually { server.requests.count >= 2 }
            for number in 0..<4 { try await app.queueStars("r\(number)", 1) }
            try await eventually { server.requests.count >= 3 }
            try await connectivity.someLooks()
            #expect(server.requests.count == 3)
            isLetGo.set()
            #expect(try await first.outcome(within: .seconds(300)).isApplied)
            running.cancel()
            try await running.value
        }
    }

    @Test("An answer of the server ends its pause: lanes go there together again")
    func together() async throws {
        let (refusals, isLetGo) = (Countdown(1), Flag())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            if refusals.take() { return .failure(TransportError(.status, "slow down", status: 429)) }
            if recipe(request) != "first" { await isLetGo.wait() }
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let first = try await app.enqueue(giveStars("first", 1), options: .init(lane: "first"))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            #expect(try await first.outcome(within: .seconds(300)).isApplied)
            for number in 0..<3 { try await app.queueStars("r\(number)", 1) }
            try await eventually { server.requests.count == 5 }
            isLetGo.set()
            running.cancel()
            try await running.value
        }
    }

    @Test("A mutation that has begun when its runner is stopped is not sent, and is the next runner's")
    func stopped() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, request in ScriptedServer.done(request) }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 1))
            let (hasBegun, isStopped) = (Flag(), Flag())
            let runner = quickRunner(app) { options in
                options.backoff = Backoff(first: .seconds(3600), cap: .seconds(3600))
                options.random = { 1 }
                options.reached = { step in
                    guard step == .begun else { return }
                    hasBegun.set()
                    while !isStopped.isSet { Thread.sleep(forTimeInterval: 0.002) }
                }
            }
            let running = Task { try await runner.run() }
            await hasBegun.wait()
            running.cancel()
            isStopped.set()
            try await running.value
            #expect(server.requests.isEmpty)
            #expect(try receipt.status()?.state == .pending)
            // Nothing has failed, so that it waits for no pause.
            let queue = try app.core.operationsStore.database().mutations
            #expect(try queue.list().map(\.notBefore) == [nil])
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
        }
    }

    @Test("A mutation in doubt whose user the server does not know is sent again at once after a sign-in")
    func signedIn() async throws {
        let refused = #"""
            {"data":null,"errors":[{"message":"who?","path":["rate"],"extensions":{"code":"UNAUTHENTICATED"}}]}
            """#
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number == 0 ? ScriptedServer.body(refused) : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 1))
            let runner = quickRunner(app) { options in
                options.backoff = Backoff(first: .seconds(3600), cap: .seconds(3600))
                options.random = { 1 }
            }
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            runner.resume()
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            running.cancel()
            try await running.value
        }
    }

    @Test("Of an answer with more than 64 KiB of data it is kept that it was applied, and not the data")
    func largeAnswer() async throws {
        let length = Mutex(1)
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            let title = String(repeating: "a", count: length.withLock { $0 })
            return ScriptedServer.body(
                #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"\#(title)","rating":1}}}"#)
        }
        try await withStoreFixture(server) { app in
            /// The bytes of what is kept of an answer with a title of so many letters.
            func kept(_ letters: Int) async throws -> Int {
                length.withLock { $0 = letters }
                let receipt = try await app.enqueue(giveStars("1", 1))
                try await quickRunner(app).drain()
                guard case .applied(let data, _) = try await receipt.outcome(within: .seconds(300)) else { return -1 }
                return data == .null ? 0 : data.json.count
            }
            let most = try await (64 << 10) - kept(1) + 1
            #expect(try await kept(most) == 64 << 10)
            #expect(try await kept(most + 1) == 0)
        }
    }
}
