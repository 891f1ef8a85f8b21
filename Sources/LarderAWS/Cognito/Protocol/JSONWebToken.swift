#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a JSON Web Token claims. Its signature is not checked: it came over TLS from the pool, and the servers to which
/// it goes check it. The claims tell whether it belongs to this pool and client at all.
struct JSONWebToken: Sendable {
    struct Claims: Decodable, Sendable {
        var iss: String?
        var aud: String?
        var client_id: String?
        var token_use: String?
        var sub: String?
        var username: String?
        var iat: Double?
        var exp: Double?
    }

    let claims: Claims

    /// Nil where it is none.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let data = Self.decoded(parts[1]),
            let claims = try? JSONDecoder().decode(Claims.self, from: data)
        else { return nil }
        self.claims = claims
    }

    /// How long it is good, in seconds, whatever the clocks show.
    var lifetime: Double? {
        guard let iat = claims.iat, let exp = claims.exp, exp > iat else { return nil }
        return exp - iat
    }

    /// Base64 for URLs, without padding (RFC 7515, section 2).
    private static func decoded(_ text: Substring) -> Data? {
        var text = String(text).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Data(base64Encoded: text)
    }
}
