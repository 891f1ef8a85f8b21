import Larder
import LarderHTTP
import LarderTestSupport
import Testing

@Suite("Identical queries at the same time", .timeLimit(.minutes(10)))
struct SharingTests {
    /// Runs `body` with a server that answers once its gate is open, and a transport to it.
    private func withGatedServer(
        options: HTTPTransport.Options = .init(), _ body: (ScriptedServer, HTTPTransport, Gate) async throws -> Void
    ) async throws {
        let gate = Gate()
        try await withServer(options: options, { _ in .json(nameAnswer).gated(gate) }) { server, transport in
            try await body(server, transport, gate)
        }
    }

    @Test("Twenty identical queries are one request, and all get its answer")
    func sendsOnce() async throws {
        try await withGatedServer { server, transport, gate in
            let tasks = (0..<20).map { _ in Task { try await transport.send(.query(), within: .ample) } }
            try await waitUntil("all of them wait") { transport.queryCallers == 20 }
            gate.open()
            for task in tasks { #expect(try await task.value.text == nameAnswer) }
            #expect(server.requests.count == 1)
        }
    }

    @Test("One after the other they are sent each")
    func sendsAgainLater() async throws {
        try await withServer { server, transport in
            _ = try await transport.send(.query(), within: .ample)
            _ = try await transport.send(.query(), within: .ample)
            #expect(server.requests.count == 2)
        }
    }

    @Test("A difference in document, name, variables or headers is another request")
    func tellsApart() async throws {
        try await withGatedServer { server, transport, gate in
            let requests: [GraphQLRequest] = [
                .query(), .query("query Name { other }"), .query(name: "Other"), .query(variables: #"{"a":1}"#),
                .query(headers: [.init(name: "X-User", value: "1")]),
            ]
            let tasks = requests.map { request in Task { try await transport.send(request, within: .ample) } }
            try await server.waitUntil("all requests arrive") { $0.requests.count == requests.count }
            gate.open()
            for task in tasks { #expect(try await task.value.text == nameAnswer) }
        }
    }

    @Test("Requests that are proven by two signers are two, and go by POST where GET was asked for")
    func tellsSignersApart() async throws {
        try await withGatedServer(options: options { $0.method = .getForQueries }) { server, transport, gate in
            let tasks = ["a", "b"].map { name in
                Task {
                    try await transport.send(
                        .query(), deadline: .now + .ample,
                        signer: RequestSigner(identity: name) { _, _, _ in [.init(name: "X-Proof", value: name)] })
                }
            }
            try await server.waitUntil("both requests arrive") { $0.requests.count == 2 }
            gate.open()
            for task in tasks { #expect(try await task.value.text == nameAnswer) }
            #expect(server.requests.map(\.method) == [.POST, .POST])
        }
    }

    @Test("A query that begins after a mutation has ended joins none that began before it")
    func asksAgainAfterMutation() async throws {
        let gate = Gate()
        try await withServer { request in
            if request.json["operationName"] == "Rename" { return .json(nameAnswer) }
            return request.number == 0
                ? .json(#"{"data":{"name":"old"}}"#).gated(gate) : .json(#"{"data":{"name":"new"}}"#)
        } _: { server, transport in
            let early = Task { try await transport.send(.query(), within: .ample) }
            try await server.waitUntil("the query arrives") { $0.requests.count == 1 }
            _ = try await transport.send(.mutation(), within: .ample)
            let late = try await transport.send(.query(), within: .ample)
            #expect(late.text.contains("new"))
            gate.open()
            #expect(try await early.value.text.contains("old"))
            #expect(server.requests.count == 3)
        }
    }

    @Test("A query that begins after a mutation has failed joins none that began before it")
    func asksAgainAfterFailedMutation() async throws {
        let gate = Gate()
        try await withServer { request in
            if request.json["operationName"] == "Rename" { return .cut }
            return request.number == 0
                ? .json(#"{"data":{"name":"old"}}"#).gated(gate) : .json(#"{"data":{"name":"new"}}"#)
        } _: { server, transport in
            let early = Task { try await transport.send(.query(), within: .ample) }
            try await server.waitUntil("the query arrives") { $0.requests.count == 1 }
            let failure = try await transportError { try await transport.send(.mutation(), within: .ample) }
            #expect(failure.code == .interrupted)
            let late = try await transport.send(.query(), within: .seconds(20))
            #expect(late.text.contains("new"))
            gate.open()
            #expect(try await early.value.text.contains("old"))
        }
    }

    @Test("Mutations are sent each")
    func sendsMutationsEach() async throws {
        try await withGatedServer { server, transport, gate in
            let tasks = (0..<3).map { _ in Task { try await transport.send(.mutation(), within: .ample) } }
            try await server.waitUntil("all requests arrive") { $0.requests.count == 3 }
            gate.open()
            for task in tasks { #expect(try await task.value.text == nameAnswer) }
        }
    }

    @Test("One caller's cancellation and another's deadline leave the third its answer")
    func keepsGoingForTheRest() async throws {
        try await withGatedServer { server, transport, gate in
            let first = Task { try await transport.send(.query(), within: .ample) }
            try await server.waitUntil("the request arrives") { $0.requests.count == 1 }
            let hurried = Task { try await transport.send(.query(), within: .milliseconds(50)) }
            let patient = Task { try await transport.send(.query(), within: .ample) }
            let timedOut = try await transportError { try await hurried.value }
            #expect(timedOut.code == .timedOut)
            try await waitUntil("the patient one has joined") { transport.queryCallers == 2 }
            first.cancel()
            let cancelled = try await transportError { try await first.value }
            #expect(cancelled.code == .cancelled)
            gate.open()
            #expect(try await patient.value.text == nameAnswer)
            #expect(server.requests.count == 1)
        }
    }

    @Test("When the last caller goes the exchange is closed, and the next caller starts a new one")
    func stopsWithTheLast() async throws {
        try await withServer { request in
            request.number == 0 ? .hang : .json(nameAnswer)
        } _: { server, transport in
            let tasks = (0..<5).map { _ in Task { try await transport.send(.query(), within: .ample) } }
            try await waitUntil("all of them wait") { transport.queryCallers == 5 }
            try await server.waitUntil("the request arrives") { $0.requests.count == 1 }
            for task in tasks { task.cancel() }
            for task in tasks {
                let error = try await transportError { try await task.value }
                #expect(error.code == .cancelled)
            }
            try await server.waitUntil("the connection closes") { $0.exchangesBroken == 1 }
            try await expect(nameAnswer, from: transport, for: .query())
        }
    }

    @Test("Every waiting caller gets the error")
    func sharesErrors() async throws {
        let gate = Gate()
        try await withServer { _ in
            .json("", status: .badGateway).gated(gate)
        } _: { server, transport in
            let tasks = (0..<3).map { _ in Task { try await transport.send(.query(), within: .ample) } }
            try await waitUntil("all of them wait") { transport.queryCallers == 3 }
            gate.open()
            for task in tasks {
                let error = try await transportError { try await task.value }
                #expect(error.status == 502)
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test("Callers that come and go at random are each told the truth", arguments: [1, 2, 3] as [UInt64])
    func survivesRandomCallers(seed: UInt64) async throws {
        try await withServer { request in
            request.number % 5 == 4 ? .cut : .json(nameAnswer)
        } _: { _, transport in
            var random = SeededNumbers(seed: seed)
            let tasks = (0..<300).map { _ in
                let (variant, delay, cancels) = (random.next() % 3, random.next() % 4_000, random.next() % 3 == 0)
                return Task { () -> String in
                    try? await Task.sleep(for: .microseconds(delay))
                    let task = Task {
                        try await transport.send(.query(variables: #"{"v":\#(variant)}"#), within: .ample)
                    }
                    if cancels { task.cancel() }
                    do {
                        return try await task.value.text
                    } catch let error as TransportError {
                        return error.code.rawValue
                    }
                }
            }
            var outcomes: [String: Int] = [:]
            for task in tasks { outcomes[try await task.value, default: 0] += 1 }
            let allowed: Set = [nameAnswer, "transport.cancelled", "transport.interrupted"]
            #expect(Set(outcomes.keys).isSubset(of: allowed), "seed \(seed): \(outcomes)")
            #expect(outcomes[nameAnswer, default: 0] > 0, "seed \(seed): \(outcomes)")
        }
    }
}
