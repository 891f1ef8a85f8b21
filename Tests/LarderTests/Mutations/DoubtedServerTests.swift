import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("A server in doubt", .timeLimit(.minutes(10)))
struct DoubtedServerTests {
    private static let page = TransportError(.unusableAnswer, "text/html", status: 200)

    private func recipe(_ request: GraphQLRequest) -> String? { request.values["recipe"] as? String }

    @Test("While it is looked for no mutation is begun, in no lane, also after one that is answered meanwhile")
    func keptBack() async throws {
        let (isSearched, isFound, isAnswered, isFirst) = (Flag(), Flag(), Flag(), Countdown(1))
        let server = ScriptedServer(
            ScriptedServer.key,
            search: { _, _ in
                isSearched.set()
                await isFound.wait()
                return ScriptedServer.found
            },
            { _, request in
                if recipe(request) == "page", isFirst.take() { return .failure(Self.page) }
                if recipe(request) == "slow" { await isAnswered.wait() }
                return ScriptedServer.done(request)
            })
        try await withStoreFixture(server) { app in
            var receipts = [try await app.queueStars("slow", 1), try await app.queueStars("slow", 2)]
            receipts.append(try await app.queueStars("page", 3))
            let connectivity = CountedConnectivity()
            let runner = quickRunner(app) { $0.connectivity = connectivity }
            let running = Task { try await runner.run() }
            try await eventually { isSearched.isSet && server.requests.count == 2 }
            receipts.append(try await app.queueStars("other", 4))
            isAnswered.set()
            try await eventually { try receipts[0].status()?.state == .applied }
            try await connectivity.someLooks()
            #expect(server.requests.count == 2)
            isFound.set()
            try await eventually { try receipts.allSatisfy { try $0.status()?.state == .applied } }
            #expect(server.requests.count == 5)
            running.cancel()
            try await running.value
        }
    }

    @Test("A server that is not found is left alone for the pause after a failure, whatever is queued meanwhile")
    func leftAlone() async throws {
        let server = ScriptedServer(
            ScriptedServer.key, search: { _, _ in .failure(Self.page) }, { _, _ in .failure(Self.page) })
        try await withStoreFixture(server) { app in
            try await app.queueStars("first", 1)
            let connectivity = CountedConnectivity()
            let runner = quickRunner(app) { options in
                options.connectivity = connectivity
                options.backoff = Backoff(first: .seconds(3600), cap: .seconds(3600))
                options.random = { 1 }
            }
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .unusableServer }
            try await app.queueStars("second", 1)
            try await connectivity.someLooks()
            #expect(server.searches == 1)
            #expect(server.requests.count == 1)
            #expect(runner.state == .unusableServer)
            running.cancel()
            try await running.value
        }
    }

    @Test("A foreign answer while the server is away is no fault of a mutation that was sent before")
    func awayMeanwhile() async throws {
        let (isSlowSent, isSearched, slow, other) = (Flag(), Flag(), Countdown(1), Countdown(1))
        let server = ScriptedServer(
            ScriptedServer.key,
            search: { number, _ in
                if number == 0 { return .failure(Self.page) }
                isSearched.set()
                return ScriptedServer.found
            },
            { _, request in
                if recipe(request) == "slow", slow.take() {
                    isSlowSent.set()
                    await isSearched.wait()
                    return .failure(Self.page)
                }
                if recipe(request) == "other", other.take() {
                    await isSlowSent.wait()
                    return .failure(Self.page)
                }
                return ScriptedServer.done(request)
            })
        try await withStoreFixture(server) { app in
            let receipts = [try await app.queueStars("slow", 1), try await app.queueStars("other", 1)]
            try await quickRunner(app) { $0.maximumFaults = 1 }.drain()
            #expect(try receipts.map { try $0.status()?.state } == [.applied, .applied])
        }
    }

    @Test("A mutation that is replayed after it was refused is refused by two answers again, as a new one is")
    func replayed() async throws {
        let server = ScriptedServer { number, request in
            number < 3 ? ScriptedServer.status(404) : ScriptedServer.done(request)
        }
        try await expectAppliedOnceReplayed(by: server)
    }

    @Test("A runner sends two mutations again that are refused once each: neither counts as refused twice")
    func refusedOnceEach() async throws {
        let (first, second, areBothSent) = (Countdown(1), Countdown(1), Flag())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            guard (recipe(request) == "first" ? first : second).take() else { return ScriptedServer.done(request) }
            if first.count + second.count == 0 { areBothSent.set() }
            await areBothSent.wait()
            return ScriptedServer.status(404)
        }
        try await withStoreFixture(server) { app in
            let receipts = [try await app.queueStars("first", 1), try await app.queueStars("second", 1)]
            try await quickRunner(app).drain()
            #expect(try receipts.map { try $0.status()?.state } == [.applied, .applied])
            #expect(server.requests.count == 4)
        }
    }

    @Test("A server that asked for patience is tried with one mutation at first, however many lanes there are")
    func triedWithOne() async throws {
        let (areAllSent, isAnswered, sent) = (Flag(), Flag(), Countdown(3))
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            guard number < 4 else {
                await isAnswered.wait()
                return ScriptedServer.done(request)
            }
            // The fourth.
            if !sent.take() { areAllSent.set() }
            await areAllSent.wait()
            return ScriptedServer.status(429)
        }
        try await withStoreFixture(server) { app in
            var receipts: [MutationReceipt] = []
            for number in 0..<6 {
                receipts.append(
                    try await app.enqueue(giveStars("1", number), options: .init(lane: MutationLane("\(number)"))))
            }
            let connectivity = CountedConnectivity()
            let runner = quickRunner(app) { options in
                options.maximumLanes = 4
                options.connectivity = connectivity
            }
            let running = Task { try await runner.run() }
            try await eventually { server.requests.count >= 5 }
            try await connectivity.someLooks()
            #expect(server.requests.count == 5)
            isAnswered.set()
            try await eventually { try receipts.allSatisfy { try $0.status()?.state == .applied } }
            running.cancel()
            try await running.value
        }
    }
}
