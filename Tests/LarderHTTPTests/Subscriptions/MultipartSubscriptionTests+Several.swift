import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderHTTP

/// What becomes of one subscription when another of its line ends.
extension MultipartSubscriptionTests {
    @Test("A subscription goes on when another of its connection is stopped")
    func stoppedAlone() async throws {
        let (reply, gate) = (Reply.multipart(ending: .hang), Gate())
        try await withServer(options: Self.multipart) { request in
            request.number == 0 ? reply : reply.gated(gate)
        } _: { server, transport in
            let line = HeardLine()
            let carrying = Task { try await line.carry(by: transport) }
            try await waitUntil("the first has begun") { line.told.count == 3 }
            line.command(.start(id: "2", .query()))
            try await server.waitUntil("the second is asked for") { $0.requests.count == 2 }
            line.command(.stop(id: "1"))
            try await waitUntil("the first has ended") { line.told.last?.hasPrefix("completed") == true }
            gate.open()
            try await waitUntil("the second has begun") {
                line.told.contains { $0.hasPrefix("started") && $0.contains("\"2\"") }
            }
            line.end()
            try await carrying.value
        }
    }

    @Test("A subscription can be stopped after another one of its line has broken off")
    func stoppedAfterAnother() async throws {
        try await withServer(options: Self.multipart) { received in
            .multipart(ending: received.number == 0 ? .hang : .complete)
        } _: { server, transport in
            let line = HeardLine()
            let carrying = Task { try await line.carry(by: transport) }
            try await waitUntil("it has begun") { line.hasBegun }
            line.command(.start(id: "2", .query()))
            try await waitUntil("the other breaks off") { !line.faults.isEmpty }
            // That is told before the line has forgotten the other; no signal reports that.
            try await Task.sleep(for: .milliseconds(50))
            line.command(.stop(id: "1"))
            try await server.waitUntil("its request is ended") { $0.exchangesBroken == 1 }
            line.end()
            try await carrying.value
        }
    }
}
