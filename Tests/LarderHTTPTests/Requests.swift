import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Synchronization
import Testing

extension GraphQLRequest {
    /// A hash that stands for the documents of these tests; no server of theirs computes it.
    static let someHash = String(repeating: "0123456789abcdef", count: 4)

    static func query(
        _ document: String = "query Name { name }", name: String? = "Name", variables: String = "{}",
        headers: [Header] = []
    ) -> GraphQLRequest {
        GraphQLRequest(
            kind: .query, operationName: name, document: document, documentHash: someHash,
            variables: Array(variables.utf8), headers: headers
        )
    }

    static func mutation(_ document: String = "mutation Rename { rename }") -> GraphQLRequest {
        GraphQLRequest(
            kind: .mutation, operationName: "Rename", document: document, documentHash: someHash,
            variables: Array("{}".utf8)
        )
    }
}

extension Duration {
    /// Longer than any test lasts.
    static let ample = Duration.seconds(60)
}

extension GraphQLAnswer {
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// An answer to `GraphQLRequest.query()`.
let nameAnswer = #"{"data":{"name":"x"}}"#

/// Runs `body` with a server that answers every request with `nameAnswer`, and a transport to it.
@discardableResult
func withServer<Result>(
    options: HTTPTransport.Options = .init(), _ body: (ScriptedServer, HTTPTransport) async throws -> Result
) async throws -> Result {
    try await withServer(options: options, { _ in .json(nameAnswer) }, body)
}

/// Runs `body` with a scripted server and a transport to it.
@discardableResult
func withServer<Result>(
    options: HTTPTransport.Options = .init(), _ script: @escaping ScriptedServer.Script,
    _ body: (ScriptedServer, HTTPTransport) async throws -> Result
) async throws -> Result {
    try await ScriptedServer.run(script) { server in
        try await HTTPTransport.withTransport(to: server.url, options: options) { transport in
            try await body(server, transport)
        }
    }
}

func options(_ change: (inout HTTPTransport.Options) -> Void) -> HTTPTransport.Options {
    var options = HTTPTransport.Options()
    change(&options)
    return options
}

/// The transport error that `body` throws; a test failure if it throws none.
func transportError(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Sendable
) async throws -> TransportError {
    let error = await #expect(throws: TransportError.self, sourceLocation: sourceLocation) { _ = try await body() }
    return try #require(error, sourceLocation: sourceLocation)
}

/// Counts across tasks.
final class Counter: Sendable {
    private let value = Atomic(0)

    var count: Int { value.load(ordering: .sequentiallyConsistent) }

    func add() { value.add(1, ordering: .sequentiallyConsistent) }
}

/// Expects the body of the answer to `request` to be `text`.
///
/// A closure in which nothing but a macro throws is taken for one that does not; hence this and no `#expect` there.
func expect(
    _ text: String, from transport: HTTPTransport, for request: GraphQLRequest,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let answer = try await transport.send(request, within: .ample)
    #expect(answer.text == text, sourceLocation: sourceLocation)
}

/// Expects that a request is given up at its deadline, and that its connection is closed.
///
/// - Returns: The error of the request.
@discardableResult
func expectGivenUp(
    _ request: GraphQLRequest, by transport: some GraphQLTransport, at server: ScriptedServer, after time: Duration,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws -> TransportError? {
    let thrown = try await requireEnd(after: time) { _ = try await transport.send(request, within: .until($0)) }
    let error = thrown as? TransportError
    #expect(error?.code == .timedOut, sourceLocation: sourceLocation)
    try await server.waitUntil("the connection closes", sourceLocation: sourceLocation) {
        $0.exchangesBroken == 1 || $0.requests.isEmpty
    }
    return error
}

/// Expects that the exchange of a request is closed at the server when the request's task is cancelled.
func expectCancelled(
    _ request: GraphQLRequest, by transport: some GraphQLTransport, at server: ScriptedServer,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let task = Task { try await transport.send(request, within: .ample) }
    try await server.waitUntil("the request arrives", sourceLocation: sourceLocation) { $0.requests.count == 1 }
    task.cancel()
    let error = try await transportError(sourceLocation: sourceLocation) { try await task.value }
    #expect(error.code == .cancelled, sourceLocation: sourceLocation)
    try await server.waitUntil("the connection closes", sourceLocation: sourceLocation) { $0.exchangesBroken == 1 }
}

/// Waits until `isSo`; fails the test if it does not come to that.
func waitUntil(
    _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool
) async throws {
    struct DidNotHappen: Error {}
    let end = SuspendingClock.now + .seconds(20)
    while !isSo() {
        guard .now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            throw DidNotHappen()
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
