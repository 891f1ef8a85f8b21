import AsyncHTTPClient
import Foundation
import LarderHTTP
import LarderTestSupport
import Testing

@Suite("The client of a transport", .timeLimit(.minutes(10)))
struct OwnClientTests {
    private func status(_ client: HTTPClient, _ url: URL) async throws -> UInt {
        try await client.execute(HTTPClientRequest(url: url.absoluteString), timeout: .seconds(60)).status.code
    }

    @Test("One that a transport has made ends with the transport")
    func own() async throws {
        try await ScriptedServer.run { _ in
            .json("{}")
        } _: { server in
            var transport: HTTPTransport? = HTTPTransport(endpoint: server.url)
            let client = try #require(transport?.client)
            #expect(try await status(client, server.url) == 200)
            transport = nil
            await #expect(throws: HTTPClientError.alreadyShutdown) { try await status(client, server.url) }
        }
    }

    @Test("One that a program has given goes on, and is the program's to shut down")
    func given() async throws {
        try await ScriptedServer.run { _ in
            .json("{}")
        } _: { server in
            let client = HTTPClient(configuration: HTTPTransport.clientConfiguration())
            var transport: HTTPTransport? = HTTPTransport(endpoint: server.url, client: client)
            #expect(transport?.client === client)
            transport = nil
            let answered: Result<UInt, any Error>
            do { answered = .success(try await status(client, server.url)) } catch { answered = .failure(error) }
            try await client.shutdown()
            #expect(try answered.get() == 200)
        }
    }
}
