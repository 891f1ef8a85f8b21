import AsyncHTTPClient
import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Testing

private let schema = """
    type Recipe { id: ID! rating: Int }
    type Query { recipe(id: ID!): Recipe }
    type Mutation { rate(recipe: ID!): Recipe! }
    """

private func rate(_ recipe: String) -> GraphQLOperation {
    GraphQLOperation(
        "mutation Rate($recipe: ID!) { rate(recipe: $recipe) { id rating } }", variables: ["recipe": .string(recipe)])
}

@Suite("Every point of an exchange, and each failure there", .timeLimit(.minutes(10)))
struct EffectTests {
    private static let answerLength = FaultyServer.answer("1000").count

    /// The places in the answer at which something changes: the first byte, in the status, in a header, around the end
    /// of the head, in the body, and its last bytes.
    private static var boundaries: [Int] {
        let head = FaultyServer.answer("1000").count - 61
        return [0, 1, 9, 12, 17, 40, head - 1, head, head + 1, head + 30, answerLength - 1, answerLength]
    }

    private static func faults(isSecure: Bool) -> [Fault] {
        var points: [Fault.Point] = [.connected, .receiving(1), .receiving(100), .receiving(300), .received]
        if isSecure { points += [.hello] + [0, 1, 5, 100, 500].map { .handshake($0) } }
        points += boundaries.map { .answering($0) }
        var faults = points.flatMap { point in Fault.Damage.allCases.map { Fault(point: point, harm: $0) } }
        if !isSecure {
            // At each byte another failure; a stall takes half a second.
            let harms: [Fault.Damage] = [.close, .reset, .garbage]
            faults += (0...answerLength).map { Fault(point: .answering($0), harm: harms[$0 % harms.count]) }
        }
        return faults
    }

    @Test(
        "Whatever fails wherever: one effect at most, and none is set aside of which nothing had left",
        arguments: [true, false], [true, false])
    func everyPoint(tellsRepeats: Bool, isSecure: Bool) async throws {
        try #require(!isSecure || TestCertificate.canBeMade, "there is no openssl here, which makes the certificate")
        try await withTemporaryFolder { folder in
            let certificate = isSecure ? try TestCertificate(in: folder) : nil
            try await FaultyServer.run(tellsRepeats: tellsRepeats, certificate: certificate) { server in
                var configuration = HTTPTransport.clientConfiguration()
                // A handshake that stalls holds up those who wait for a connection until then.
                configuration.timeout.connect = .milliseconds(500)
                if let certificate { configuration.tlsConfiguration = try certificate.clientConfiguration() }
                try await HTTPClient.withHTTPClient(configuration: configuration) { client in
                    var options = HTTPTransport.Options()
                    if tellsRepeats { options.idempotency = .header(name: "Idempotency-Key") }
                    let transport = HTTPTransport(endpoint: server.url, client: client, options: options)
                    let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
                    let app = try store.partition(server: transport)
                    try await self.send(Self.faults(isSecure: isSecure), app, server, tellsRepeats)
                    try store.close()
                }
            }
        }
    }

    private func send(
        _ faults: [Fault], _ app: Partition, _ server: FaultyServer, _ tellsRepeats: Bool
    ) async throws {
        var options = MutationRunner.Options()
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
        options.timeout = .milliseconds(500)
        options.maximumLanes = 1
        let runner = MutationRunner(app, options: options)
        let running = Task { try await runner.run() }
        var setAside = 0
        for (index, fault) in faults.enumerated() {
            let recipe = "\(1_000 + index)"
            server.arm(fault)
            let receipt = try await app.enqueue(rate(recipe))
            _ = try await receipt.outcome(within: .seconds(300))
            let status = try #require(try receipt.status())
            server.arm(nil)
            let (effects, requests) = server.state.withLock { ($0.effects[recipe] ?? 0, $0.requests[recipe] ?? 0) }
            if tellsRepeats {
                #expect(status.state == .applied, "\(fault): \(String(describing: status.failure))")
                #expect(effects == 1, "\(fault)")
            } else {
                #expect(effects <= 1, "\(fault)")
                if status.state == .applied {
                    #expect(effects == 1, "\(fault)")
                } else {
                    setAside += 1
                    #expect(status.state == .deadLetter && status.failure?.kind == .outcomeUnknown, "\(fault)")
                    // On a slow machine a later attempt may have been too slow.
                    #expect(!fault.isBeforeSending || requests > 0, "\(fault) was before anything was sent")
                }
            }
        }
        // Otherwise the faults were none.
        if !tellsRepeats { #expect(setAside > 10) }
        running.cancel()
        try await running.value
    }

    @Test("A server that is not there has been sent nothing")
    func refused() async throws {
        let url = try await ScriptedServer.run { _ in
            .hang
        } _: { server in
            server.url
        }
        try await HTTPTransport.withTransport(to: url) { transport in
            let error = try await transportError { try await transport.send(.mutation(), within: .ample) }
            #expect(error.code == .unreachable && error.phase == .beforeSending)
        }
    }

    @Test("A deadline in the TLS handshake has sent nothing, and a connection that breaks in the answer has")
    func phases() async throws {
        try #require(TestCertificate.canBeMade, "there is no openssl here, which makes the certificate")
        try await withTemporaryFolder { folder in
            let certificate = try TestCertificate(in: folder)
            try await FaultyServer.run(tellsRepeats: false, certificate: certificate) { server in
                var configuration = HTTPTransport.clientConfiguration()
                // The client is shut down once the handshake that stalls is given up.
                configuration.timeout.connect = .seconds(10)
                configuration.tlsConfiguration = try certificate.clientConfiguration()
                try await HTTPClient.withHTTPClient(configuration: configuration) { client in
                    let transport = HTTPTransport(endpoint: server.url, client: client)
                    var request = GraphQLRequest.mutation()
                    request.variables = Array(#"{"recipe":"1"}"#.utf8)
                    let sent = request
                    server.arm(Fault(point: .answering(100), harm: .garbage))
                    let damaged = try await transportError { try await transport.send(sent, within: .ample) }
                    #expect(damaged.code == .interrupted && damaged.phase == .sending)
                    #expect(server.state.withLock { $0.effects } == ["1": 1])
                    server.arm(Fault(point: .hello, harm: .stall))
                    let late = try await transportError {
                        try await transport.send(sent, within: .milliseconds(300))
                    }
                    #expect(late.code == .timedOut && late.phase == .beforeSending)
                }
            }
        }
    }
}
