import Foundation
import Larder
import Testing

@testable import LarderURLSession

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("What the system says of an exchange over URLSession", .timeLimit(.minutes(1)))
struct URLSessionErrorTests {
    /// What an exchange ends with of which the system says this, after so many bytes of its body were sent.
    private func error(_ code: URLError.Code, bytesSent: Int64 = 0) async throws -> TransportError {
        let url = try #require(URL(string: "http://127.0.0.1:1/graphql"))
        let exchange = Exchange(URLSession.shared.dataTask(with: url), limit: 10)
        exchange.end(URLError(code), bytesSent: bytesSent)
        return try await transportError { try await exchange.head() }
    }

    @Test("Each failure of the system's has one meaning, and those without a connection say that nothing had left")
    func meanings() async throws {
        let unsent: [(URLError.Code, TransportError.Code)] = [
            (.cannotFindHost, .unreachable), (.dnsLookupFailed, .unreachable), (.cannotConnectToHost, .unreachable),
            (.notConnectedToInternet, .unreachable), (.dataNotAllowed, .unreachable),
            (.internationalRoamingOff, .unreachable), (.serverCertificateUntrusted, .insecure),
            (.serverCertificateHasBadDate, .insecure), (.serverCertificateHasUnknownRoot, .insecure),
            (.serverCertificateNotYetValid, .insecure), (.badURL, .unusableRequest),
            (.unsupportedURL, .unusableRequest),
        ]
        for (code, meaning) in unsent {
            let error = try await error(code)
            #expect(error.code == meaning && error.phase == .beforeSending, "\(code) \(error)")
        }
        let sent: [(URLError.Code, TransportError.Code)] = [
            (.secureConnectionFailed, .insecure), (.clientCertificateRejected, .insecure),
            (.clientCertificateRequired, .insecure), (.timedOut, .timedOut), (.cancelled, .cancelled),
            (.cannotParseResponse, .unusableAnswer), (.cannotDecodeContentData, .unusableAnswer),
            (.cannotDecodeRawData, .unusableAnswer), (.networkConnectionLost, .interrupted),
            (.badServerResponse, .interrupted),
        ]
        for (code, meaning) in sent {
            let error = try await error(code)
            #expect(error.code == meaning && error.phase == .sending, "\(code) \(error)")
        }
    }

    @Test("A request of which bytes were sent may have taken effect, whatever the system says of the connection")
    func partlySent() async throws {
        for code in [URLError.Code.cannotConnectToHost, .notConnectedToInternet, .cannotFindHost] {
            #expect(try await error(code).phase == .beforeSending)
            #expect(try await error(code, bytesSent: 1).phase == .sending)
        }
    }
}
