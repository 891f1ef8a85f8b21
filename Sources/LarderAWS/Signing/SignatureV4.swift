import Crypto
import Foundation
package import Larder
import LarderFiles

/// Signature Version 4: what proves to a service that the sender of a request knows the secret key, and that the
/// request is the same as when it left.
package struct SignatureV4: Sendable {
    package let credentials: Credentials.CloudCredentials
    package let time: SigningTime
    package let region: String
    package let service: String
    /// Derived from the secret, so that a service needs to know no more than that of a day.
    private let key: SymmetricKey

    package init(
        credentials: Credentials.CloudCredentials, time: SigningTime, region: String, service: String = "s3"
    ) {
        self.credentials = credentials
        self.time = time
        self.region = region
        self.service = service
        var key = SymmetricKey(data: Data("AWS4\(credentials.secretAccessKey)".utf8))
        for word in [time.day, region, service, "aws4_request"] {
            key = SymmetricKey(data: Data(HMAC<SHA256>.authenticationCode(for: Data(word.utf8), using: key)))
        }
        self.key = key
    }

    /// What the signature holds for: `20130524/us-east-1/s3/aws4_request`.
    package var scope: String { "\(time.day)/\(region)/\(service)/aws4_request" }

    /// Signs lines of text.
    private func signature(_ lines: String...) -> String {
        let text = lines.joined(separator: "\n")
        return hexadecimal(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key))
    }

    /// Signs a request: 64 hexadecimal digits.
    package func signature(of request: CanonicalRequest) -> String {
        signature("AWS4-HMAC-SHA256", time.stamp, scope, Self.digest(request.text))
    }

    /// The value of the header `Authorization`.
    package func authorization(of request: CanonicalRequest, signature: String) -> String {
        "AWS4-HMAC-SHA256 Credential=\(credentials.accessKeyID)/\(scope), "
            + "SignedHeaders=\(request.signedHeaders), Signature=\(signature)"
    }

    /// The query of a URL that its holder may use, encoded, with its signature.
    ///
    /// - Parameters:
    ///   - request: With `host` among its headers.
    ///   - seconds: How long it can be used: up to a week.
    package func presignedQuery(of request: CanonicalRequest, seconds: Int) -> String {
        var request = request
        request.query += [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", "\(credentials.accessKeyID)/\(scope)"),
            ("X-Amz-Date", time.stamp), ("X-Amz-Expires", String(seconds)),
            ("X-Amz-SignedHeaders", request.signedHeaders),
        ]
        if let token = credentials.tokenToSend { request.query.append(("X-Amz-Security-Token", token)) }
        return CanonicalRequest.queryText(request.query) + "&X-Amz-Signature=\(signature(of: request))"
    }

    /// Signs a chunk of a body, given the SHA-256 of its bytes.
    package func signature(ofChunk digest: String, after previous: String) -> String {
        signature("AWS4-HMAC-SHA256-PAYLOAD", time.stamp, scope, previous, PayloadHash.empty.headerValue, digest)
    }

    /// Signs what follows the last chunk: lines of `name:value`, each with its end.
    package func signature(ofTrailer lines: String, after previous: String) -> String {
        signature("AWS4-HMAC-SHA256-TRAILER", time.stamp, scope, previous, Self.digest(lines))
    }

    private static func digest(_ text: String) -> String { hexadecimal(SHA256.hash(data: Data(text.utf8))) }
}
