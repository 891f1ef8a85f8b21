import AsyncHTTPClient
import Larder
import NIOCore
import NIOHTTP1

/// A response of the client's, for the reader of answers.
struct ClientAnswer: HTTPAnswer {
    private let response: HTTPClientResponse

    /// - Throws: `.status` where the client has followed a redirect.
    init(_ response: HTTPClientResponse) throws(TransportError) {
        if let first = response.history.first, response.history.count > 1 {
            throw TransportError(
                .status,
                "The HTTP client followed a redirect, which may have dropped the operation; give it a configuration "
                    + "that disallows redirects.",
                status: Int(first.responseHead.status.code)
            )
        }
        self.response = response
    }

    var statusCode: Int { Int(response.status.code) }
    var statusText: String { "\(response.status)" }

    func headers(named name: String) -> [String] { response.headers[name] }

    func body(upTo limit: Int) async throws(TransportError) -> (bytes: [UInt8], isWhole: Bool) {
        var bytes: [UInt8] = []
        if let length = response.headers.first(name: "Content-Length").flatMap({ Int($0) }), length > 0 {
            bytes.reserveCapacity(min(length, max(0, limit), 16 << 20))
        }
        do {
            for try await chunk in response.body {
                let room = max(0, limit - bytes.count)
                bytes += chunk.readableBytesView.prefix(room)
                if chunk.readableBytes > room { return (bytes, false) }
            }
        } catch {
            throw TransportError(ofClient: error, in: .sending)
        }
        return (bytes, true)
    }
}
