import Larder
import LarderTesting
import Testing

@Suite("A network that is switched", .timeLimit(.minutes(5)))
struct SwitchedConnectivityTests {
    @Test("A runner sends nothing while the network is off, and what is queued when it comes back")
    func switched() async throws {
        try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
            let server = ScriptedServer(schema: store.schema)
            let network = SwitchedConnectivity(isConnected: false)
            let app = try store.partition(server: server)
            var options = RunOptions()
            options.mutations.connectivity = network
            let service = Task { [options] in try await app.run(options) }
            defer { service.cancel() }
            let receipt = try await app.enqueue(RateRecipe(id: "7", rating: 5))
            await #expect(throws: LarderError.self) { try await receipt.outcome(within: .milliseconds(300)) }
            #expect(server.requests.isEmpty)

            network.isConnected = true
            #expect(try await receipt.outcome(within: .seconds(120)).isApplied)
            #expect(server.requests.map(\.operationName) == ["Rate"])
        }
    }

    @Test("Each change is told once, until the observation is stopped")
    func told() async {
        let network = SwitchedConnectivity()
        let (changes, continuation) = AsyncStream.makeStream(of: Bool.self)
        let observation = network.observe { continuation.yield($0) }
        network.isConnected = true
        network.isConnected = false
        network.isConnected = true
        observation.stop()
        network.isConnected = false
        continuation.finish()
        let told = await changes.reduce(into: [Bool]()) { $0.append($1) }
        #expect(told == [false, true])
    }

    @Test("An observer of the network is told of changes after another has stopped")
    func toldAlone() async {
        let network = SwitchedConnectivity()
        let (changes, continuation) = AsyncStream.makeStream(of: Bool.self)
        let (first, second) = (network.observe { _ in }, network.observe { continuation.yield($0) })
        first.stop()
        network.isConnected = false
        second.stop()
        continuation.finish()
        let told = await changes.reduce(into: [Bool]()) { $0.append($1) }
        #expect(told == [false])
    }

    @Test("A wait for requests ends with those of the name, or when its time is over")
    func awaited() async throws {
        try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
            let server = ScriptedServer(schema: store.schema)
            let app = try store.partition(server: server)
            let waiting = Task { try await server.requests(1, named: "One") }
            _ = try await app.fetch(GraphQLOperation("query Other { node { id } }"), policy: .networkOnly)
            _ = try await app.fetch(OneRecipe(id: "7"), policy: .networkOnly)
            #expect(try await waiting.value.count == 1)
            let error = await #expect(throws: TransportError.self) {
                try await server.requests(2, named: "One", within: .milliseconds(20))
            }
            #expect(error?.code == .timedOut)
        }
    }
}
