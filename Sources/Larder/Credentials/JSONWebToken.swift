import Foundation

/// What a JSON Web Token claims. Its signature is not checked: it came over TLS from the pool, and the servers to which
/// it goes check it. The claims tell whether it belongs to this pool and client at all.
package struct JSONWebToken: Sendable {
    package struct Claims: Decodable, Sendable {
        package var iss: String?
        package var aud: String?
        package var client_id: String?
        package var token_use: String?
        package var sub: String?
        package var username: String?
        package var iat: Double?
        package var exp: Double?
    }

    package let claims: Claims

    /// Nil where it is none.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let data = Data(base64ForURLs: parts[1]),
            let claims = try? JSONDecoder().decode(Claims.self, from: data)
        else { return nil }
        self.claims = claims
    }

    /// How long it is good, in seconds, whatever the clocks show.
    package var lifetime: Double? {
        guard let iat = claims.iat, let exp = claims.exp, exp > iat else { return nil }
        return exp - iat
    }
}

extension Data {
    /// Base64 for URLs, without padding (RFC 7515, section 2).
    package init?(base64ForURLs text: some StringProtocol) {
        var text = String(text).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        self.init(base64Encoded: text)
    }

    /// Base64 for URLs, without padding (RFC 7515, section 2).
    package var base64ForURLs: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
