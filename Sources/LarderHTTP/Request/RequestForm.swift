import AsyncHTTPClient
import Foundation
import Larder
import NIOCore
import NIOHTTP1

/// The shape of an operation on the wire, as "GraphQL over HTTP" has it: a JSON object with `operationName`,
/// `query`, `variables` and `extensions`, or the same names as parameters of a URL.
struct RequestForm {
    /// How the document is told.
    enum Document {
        case text, hash, textAndHash
    }

    let endpoint: URL
    let request: GraphQLRequest
    let headers: RequestHeaders
    let options: HTTPTransport.Options
    let departure: Departure
    /// Signs what goes by POST; a GET has no body that could be signed.
    var signer: RequestSigner?

    func httpRequest(_ document: Document) throws(TransportError) -> HTTPClientRequest {
        guard document == .text || Self.isHash(request.documentHash) else {
            throw TransportError(
                .unusableRequest, "The document's hash must be 64 lowercase hexadecimal digits (SHA-256)."
            )
        }
        var url = endpoint.absoluteString
        if let fragment = url.firstIndex(of: "#") { url.removeSubrange(fragment...) }
        if request.kind == .query, options.method == .getForQueries, signer == nil {
            let withQuery = url + (url.contains("?") ? "&" : "?") + queryString(document)
            if withQuery.utf8.count <= options.maximumURLLength { return get(withQuery) }
        }
        return post(url, document)
    }

    private func get(_ url: String) -> HTTPClientRequest {
        var http = HTTPClientRequest(url: url)
        http.method = .GET
        http.headers = fields([("Accept", Self.accept)])
        return http
    }

    private func post(_ url: String, _ document: Document) -> HTTPClientRequest {
        var http = HTTPClientRequest(url: url)
        http.method = .POST
        http.headers = fields([("Accept", Self.accept), ("Content-Type", "application/json")])
        let body = body(document)
        if let signer {
            let signed = [GraphQLRequest.Header(name: "content-type", value: http.headers["content-type"].first ?? "")]
            for header in signer.headers(endpoint, signed, body) {
                http.headers.replaceOrAdd(name: header.name, value: header.value)
            }
        }
        http.body = departure.body(ByteBuffer(bytes: body))
        return http
    }

    private static let accept = "application/graphql-response+json, application/json;q=0.9"

    private func fields(_ defaults: [(String, String)]) -> HTTPHeaders {
        var fields = HTTPHeaders(defaults)
        for header in headers.fields { fields.remove(name: header.name) }
        for header in headers.fields { fields.add(name: header.name, value: header.value) }
        return fields
    }

    private func body(_ document: Document) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(request.document.utf8.count + request.variables.count + 256)
        json.append(UInt8(ascii: "{"))
        for part in parts(document) {
            if json.count > 1 { json.append(UInt8(ascii: ",")) }
            appendJSONString(part.name, to: &json)
            json.append(UInt8(ascii: ":"))
            switch part.value {
            case .text(let text): appendJSONString(text, to: &json)
            case .json(let bytes): json += bytes
            }
        }
        json.append(UInt8(ascii: "}"))
        return json
    }

    private func queryString(_ document: Document) -> String {
        parts(document).map { part in
            switch part.value {
            case .text(let text): "\(part.name)=\(Self.percentEncoded(text.utf8))"
            case .json(let bytes): "\(part.name)=\(Self.percentEncoded(bytes))"
            }
        }.joined(separator: "&")
    }

    private enum Value {
        case text(String)
        case json([UInt8])
    }

    private func parts(_ document: Document) -> [(name: String, value: Value)] {
        var parts: [(name: String, value: Value)] = []
        if let name = request.operationName { parts.append(("operationName", .text(name))) }
        if document != .hash { parts.append(("query", .text(request.document))) }
        if request.variables != Array("{}".utf8), !request.variables.isEmpty {
            parts.append(("variables", .json(request.variables)))
        }
        if document != .text {
            let extensions = #"{"persistedQuery":{"version":1,"sha256Hash":"\#(request.documentHash)"}}"#
            parts.append(("extensions", .json(Array(extensions.utf8))))
        }
        return parts
    }

    private static func isHash(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// Everything but the unreserved characters of RFC 3986, section 2.3, as `%XX`.
    private static func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                text.append(byte)
            default:
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
