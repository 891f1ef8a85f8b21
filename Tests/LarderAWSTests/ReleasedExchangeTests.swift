import AsyncHTTPClient
import Foundation
import Larder
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

@testable import LarderAWS

@Suite("Exchanges that are over", .timeLimit(.minutes(10)))
struct ReleasedExchangeTests {
    private final class WeakExchange: Sendable {
        private let exchange = Mutex(Weak())
        private struct Weak { weak var value: BodyExchange? }

        init(_ exchange: BodyExchange) { self.exchange.withLock { $0.value = exchange } }
        var isReleased: Bool { exchange.withLock { $0.value == nil } }
    }

    /// Sends a body of four bytes.
    private static func exchange(_ url: URL, _ client: HTTPClient, largestAnswer: Int) async -> WeakExchange {
        let exchange = BodyExchange(client, largestAnswer: largestAnswer, clock: ExchangeClock(idle: .seconds(60)))
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = .PUT
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = try? await exchange.send([.byteBuffer(ByteBuffer(string: "soup"))], isLast: true).get()
            }
            _ = try? await exchange.run(request, length: 4)
            group.cancelAll()
        }
        return WeakExchange(exchange)
    }

    @Test("A request of a client that was shut down is one that could not be prepared")
    func shutDown() {
        #expect(ObjectError(ofClient: HTTPClientError.alreadyShutdown).code == .notPrepared)
    }

    @Test("The error of a request without credentials has the time that the identity provider asks to wait")
    func waitsForCredentials() {
        let refusal = IdentityError(.throttled, "Too often", retryAfter: .seconds(30))
        let error = LarderError(.identityThrottled, refusal.message, cause: refusal)
        #expect(ObjectError(ofCaller: error, .notPrepared, "There are none").retryAfter == .seconds(30))
    }

    @Test("Each is released with its answer, however it ended", .timeLimit(.minutes(3)))
    func released() async throws {
        var early = Reply.error(.badRequest, "ExpiredToken")
        (early.afterBytes, early.closes) = (1, true)
        let large = Reply.xml(.ok, String(repeating: " ", count: 1 << 20))
        for reply in [Reply.stored(), .error(.forbidden, "AccessDenied"), early, .cut, large] {
            try await ScriptedStorage.run { _ in
                reply
            } _: { storage, _ in
                try await HTTPClient.withHTTPClient(configuration: S3Transport.clientConfiguration) { client in
                    var exchanges: [WeakExchange] = []
                    for number in 0..<50 {
                        // Every other one is given up for its length, where the answer is long.
                        let largest = number.isMultiple(of: 2) ? 8 << 20 : 100_000
                        exchanges.append(await Self.exchange(storage.url, client, largestAnswer: largest))
                    }
                    let deadline = SuspendingClock.now + .seconds(30)
                    while exchanges.contains(where: { !$0.isReleased }), .now < deadline {
                        try await Task.sleep(for: .milliseconds(10))
                    }
                    #expect(exchanges.count { !$0.isReleased } == 0, "\(reply.status), \(reply.ending)")
                }
            }
        }
    }
}
