import Foundation
import Larder
import LarderTesting
import Synchronization
import Testing

@Suite("A scripted server", .timeLimit(.minutes(5)))
struct ScriptedServerTests {
    private struct Odd: Error {}

    private let request = GraphQLRequest(
        kind: .query, operationName: nil, document: "{ a }", documentHash: "", variables: Array("{}".utf8))

    private let soon = Duration.seconds(60)

    @Test("What a script throws says that the server is away, unless it is an error of a transport")
    func errors() async {
        let cases: [(any Error & Sendable, TransportError.Code)] = [
            (Odd(), .unreachable), (CancellationError(), .cancelled), (TransportError(.insecure, "no"), .insecure),
        ]
        for (thrown, code) in cases {
            let server = ScriptedServer { _ in throw thrown }
            let error = await #expect(throws: TransportError.self) {
                try await server.send(request, within: soon)
            }
            #expect(error?.code == code)
            #expect(server.requests.count == 1)
        }
    }

    @Test("A server that cannot be reached notes what it was asked, and its script does not see it")
    func unreachable() async throws {
        let server = ScriptedServer { _ in "{}" }
        server.isReachable = false
        let error = await #expect(throws: TransportError.self) { try await server.send(request, within: soon) }
        #expect(error?.code == .unreachable && error?.phase == .beforeSending)
        #expect(!server.isReachable && server.requests.map(\.document) == ["{ a }"])
        server.isReachable = true
        let answer = try await server.send(request, within: soon)
        #expect(answer.body == Array("{}".utf8) && answer.status == 200 && server.requests.count == 2)
    }

    @Test("A wait for requests gives those that came before it as well, and ends when its task is cancelled")
    func waits() async throws {
        let server = ScriptedServer(.header(name: "Key")) { _ in "{}" }
        #expect(server.idempotency == .header(name: "Key"))
        _ = try await server.send(request, within: soon)
        let found = try await server.requests(1, within: .zero)
        #expect(found.count == 1)
        let waiting = Task { try await server.requests(2) }
        waiting.cancel()
        let error = await #expect(throws: TransportError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
    }

    @Test("A scripted server has the idempotency that the test gives it, and none by default")
    func idempotency() throws {
        let schema = try Schema(parsing: kitchenSchema)
        let knowing = ScriptedServer(schema: schema, idempotency: .header(name: "Key"))
        #expect(knowing.idempotency == .header(name: "Key"))
        #expect(ScriptedServer(schema: schema).idempotency == nil)
    }

    @Test("A server that is told a key twice notes what took effect under it once, and what has no key each time")
    func effectsByKey() {
        let server = ScriptedServer { _ in "{}" }
        for (effect, key) in [("a", "1"), ("b", "1"), ("b", "2"), ("c", nil), ("c", nil)] as [(String, String?)] {
            server.note(effect, key: key)
        }
        #expect(server.effects == ["a", "b", "c", "c"])
    }

    @Test("Observers of a network are told in the order in which they came")
    func observers() {
        let network = SwitchedConnectivity(isConnected: false)
        #expect(!network.isConnected)
        let told = Mutex<[String]>([])
        let observations = (0..<12).map { number in
            network.observe { isConnected in told.withLock { $0.append("\(number) \(isConnected)") } }
        }
        network.isConnected = true
        #expect(network.isConnected && told.withLock { $0 } == (0..<12).map { "\($0) true" })
        for observation in observations { observation.stop() }
        network.isConnected = false
        #expect(told.withLock { $0.count } == 12)
    }

    @Test("A temporary store is closed and removed, whatever comes of the body")
    func temporary() async throws {
        var folder: URL?
        let app = try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
            folder = store.folder
            #expect(FileManager.default.fileExists(atPath: store.folder.path))
            return try store.partition()
        }
        #expect(throws: LarderError.self) { try app.read(GraphQLOperation("{ node { id } }")) }
        #expect(try !FileManager.default.fileExists(atPath: #require(folder).path))
        // The store would live on with a partition that is held.
        var held: Partition?
        await #expect(throws: Odd.self) {
            try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
                folder = store.folder
                held = try store.partition()
                throw Odd()
            }
        }
        let kept = try #require(held)
        #expect(throws: LarderError.self) { try kept.read(GraphQLOperation("{ node { id } }")) }
        #expect(try !FileManager.default.fileExists(atPath: #require(folder).path))
    }
}
