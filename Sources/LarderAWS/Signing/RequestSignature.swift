import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Signs requests to services other than S3.
enum RequestSignature {
    /// The headers that sign a request: `x-amz-date`, the session's token where there is one, and
    /// `authorization`.
    ///
    /// - Parameter headers: The headers that the signature covers, beside the host's and these.
    static func headers(
        _ method: String = "POST", to url: URL, _ headers: [GraphQLRequest.Header], body: [UInt8],
        _ credentials: Credentials.CloudCredentials, service: String, region: String, at time: Date
    ) -> [GraphQLRequest.Header] {
        let signature = SignatureV4(
            credentials: credentials, time: SigningTime(time), region: region, service: service)
        var added = [GraphQLRequest.Header(name: "x-amz-date", value: signature.time.stamp)]
        if let token = credentials.tokenToSend { added.append(.init(name: "x-amz-security-token", value: token)) }
        let path = url.path(percentEncoded: true)
        let request = CanonicalRequest(
            method: method,
            // Services other than S3 encode the path once more.
            path: path.isEmpty ? "/" : URIEncoding.path(path),
            query: URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems?
                .map { ($0.name, $0.value ?? "") } ?? [],
            headers: [("host", url.hostOnTheWire)] + (headers + added).map { ($0.name, $0.value) },
            payloadHash: .of(body))
        added.append(
            .init(
                name: "authorization",
                value: signature.authorization(of: request, signature: signature.signature(of: request))))
        return added
    }
}

extension URL {
    /// The host as a request and its signature have it: with the port, unless it is the scheme's own.
    var hostOnTheWire: String {
        let host = host() ?? ""
        let name = host.contains(":") ? "[\(host)]" : host
        guard let port, port != (scheme?.lowercased() == "https" ? 443 : 80) else { return name }
        return "\(name):\(port)"
    }
}

extension Credentials.CloudCredentials {
    /// The session's token; nil where there is none. A service refuses an empty one.
    var tokenToSend: String? { sessionToken.flatMap { $0.isEmpty ? nil : $0 } }
}
