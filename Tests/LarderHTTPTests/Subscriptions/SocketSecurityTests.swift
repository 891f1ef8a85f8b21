import Larder
import LarderHTTP
import LarderTestSupport
import Testing

@Suite(
    "The security of a connection for subscriptions", .timeLimit(.minutes(5)),
    .enabled(if: TestCertificate.canBeMade, "needs openssl"))
struct SocketSecurityTests {
    @Test("A certificate is trusted that the options of subscriptions know, and no other", arguments: [true, false])
    func trusted(isKnown: Bool) async throws {
        try await withTemporaryFolder { folder in
            let certificate = try TestCertificate(in: folder)
            try await FaultyServer.run(tellsRepeats: false, certificate: certificate) { server in
                var options = HTTPTransport.Options()
                if isKnown { options.subscriptions.tls = try certificate.clientConfiguration() }
                // What comes through TLS is not answered.
                server.arm(Fault(point: .receiving(1), harm: .close))
                let line = SubscriptionLine(commands: AsyncStream { $0.finish() }) { _ in }
                try await HTTPTransport.withTransport(to: server.url, options: options) { transport in
                    let error = try await transportError {
                        try await transport.carry(line, openedWithin: .ample)
                    }
                    #expect(error.code == (isKnown ? .interrupted : .insecure))
                }
            }
        }
    }
}
