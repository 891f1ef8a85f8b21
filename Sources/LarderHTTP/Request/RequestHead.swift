package import AsyncHTTPClient
package import Larder

extension HTTPClientRequest {
    /// How many bytes the first line and the headers of a request may have. Servers take no more, and AsyncHTTPClient
    /// ends the process where a body follows a head that fills its channel, which is full at 64 KiB.
    package static let maximumHeadSize = 32 << 10

    /// Refuses a request whose head is larger than that. Every request passes here before it is sent.
    package func requireBoundedHead() throws(TransportError) {
        let ends = 4
        let size = headers.reduce(method.rawValue.utf8.count + url.utf8.count + " HTTP/1.1".utf8.count + ends) {
            $0 + $1.name.utf8.count + $1.value.utf8.count + ends
        }
        guard size <= Self.maximumHeadSize else {
            throw TransportError(
                .unusableRequest,
                "The head of the request has \(size) bytes, and \(Self.maximumHeadSize) are allowed; send shorter "
                    + "headers, and longer values in the body.")
        }
    }
}
