import Foundation
import Larder
import LarderTestSupport
import NIOHTTP1
import Synchronization
import Testing

@testable import LarderHTTP

/// What becomes of one subscription when another of its line ends.
extension MultipartSubscriptionTests {
    /// A subscription has begun, and stays open.
    private static let begun = Reply(
        headers: ["Content-Type": #"multipart/mixed;boundary="b";subscriptionSpec=1.0"#],
        body: Array("--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\n".utf8), ending: .hang)

    @Test("A subscription goes on when another of its connection is stopped")
    func stoppedAlone() async throws {
        let reply = Self.begun
        var options = HTTPTransport.Options()
        options.subscriptions.carrier = .multipart
        let gate = Gate()
        try await withServer(options: options) { request in
            request.number == 0 ? reply : reply.gated(gate)
        } _: { server, transport in
            let (commands, commanding) = AsyncStream.makeStream(of: [SubscriptionLine.Command].self)
            let told = Mutex<[String]>([])
            let line = SubscriptionLine(commands: commands) { messages in
                told.withLock { $0 += messages.map { "\($0)" } }
            }
            commanding.yield([.start(id: "1", .query())])
            let carrying = Task { try await transport.carry(line, openedWithin: .ample) }
            try await waitUntil("the first has begun") { told.withLock { $0.count == 3 } }
            commanding.yield([.start(id: "2", .query())])
            try await server.waitUntil("the second is asked for") { $0.requests.count == 2 }
            commanding.yield([.stop(id: "1")])
            try await waitUntil("the first has ended") { told.withLock { $0.last?.hasPrefix("completed") == true } }
            gate.open()
            try await waitUntil("the second has begun") {
                told.withLock { $0.contains { $0.hasPrefix("started") && $0.contains("\"2\"") } }
            }
            commanding.finish()
            try await carrying.value
        }
    }

    @Test("A subscription can be stopped after another one of its line has broken off")
    func stoppedAfterAnother() async throws {
        var options = HTTPTransport.Options()
        options.subscriptions.carrier = .multipart
        try await withServer(options: options) { received in
            var reply = Self.begun
            if received.number > 0 { reply.ending = .complete }
            return reply
        } _: { server, transport in
            let (commands, commanding) = AsyncStream.makeStream(of: [SubscriptionLine.Command].self)
            let told = Mutex<[String]>([])
            let line = SubscriptionLine(commands: commands) { messages in
                told.withLock { $0 += messages.map { "\($0)" } }
            }
            commanding.yield([.start(id: "1", .query())])
            let carrying = Task { try await transport.carry(line, openedWithin: .ample) }
            try await waitUntil("it has begun") { told.withLock { $0.contains { $0.hasPrefix("started") } } }
            commanding.yield([.start(id: "2", .query())])
            try await waitUntil("the other breaks off") { told.withLock { $0.contains { $0.hasPrefix("broken") } } }
            // That is told before the line has forgotten the other; no signal reports that.
            try await Task.sleep(for: .milliseconds(50))
            commanding.yield([.stop(id: "1")])
            try await server.waitUntil("its request is ended") { $0.exchangesBroken == 1 }
            commanding.finish()
            try await carrying.value
        }
    }
}
