import AsyncHTTPClient
import Foundation
import Larder
import NIOCore
import NIOHTTP1

/// An operation as a request of the client's.
struct RequestForm {
    let endpoint: URL
    let request: GraphQLRequest
    let headers: RequestHeaders
    let options: HTTPTransport.Options
    let departure: Departure
    /// Signs what goes by POST; a GET has no body that could be signed.
    var signer: RequestSigner?

    func httpRequest(_ told: RequestDocument.Told) throws(TransportError) -> HTTPClientRequest {
        let document = RequestDocument(request, told)
        guard told == .text || document.hasHash else {
            throw TransportError(
                .unusableRequest, "The document's hash must be 64 lowercase hexadecimal digits (SHA-256)."
            )
        }
        var url = endpoint.absoluteString
        if let fragment = url.firstIndex(of: "#") { url.removeSubrange(fragment...) }
        if request.kind == .query, options.method == .getForQueries, signer == nil {
            let withQuery = url + (url.contains("?") ? "&" : "?") + document.queryString
            if withQuery.utf8.count <= options.maximumURLLength { return get(withQuery) }
        }
        return post(url, document.json)
    }

    private func get(_ url: String) -> HTTPClientRequest {
        var http = HTTPClientRequest(url: url)
        http.method = .GET
        http.headers = fields([("Accept", RequestDocument.accept)])
        return http
    }

    private func post(_ url: String, _ body: [UInt8]) -> HTTPClientRequest {
        var http = HTTPClientRequest(url: url)
        http.method = .POST
        http.headers = fields([("Accept", RequestDocument.accept), ("Content-Type", "application/json")])
        if let signer {
            let signed = [GraphQLRequest.Header(name: "content-type", value: http.headers["content-type"].first ?? "")]
            for header in signer.headers(endpoint, signed, body) {
                http.headers.replaceOrAdd(name: header.name, value: header.value)
            }
        }
        http.body = departure.body(ByteBuffer(bytes: body))
        return http
    }

    private func fields(_ defaults: [(String, String)]) -> HTTPHeaders {
        var fields = HTTPHeaders(defaults)
        for header in headers.fields { fields.remove(name: header.name) }
        for header in headers.fields { fields.add(name: header.name, value: header.value) }
        return fields
    }
}
