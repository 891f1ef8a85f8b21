import AsyncHTTPClient
import Larder
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The pool's pages speak OAuth 2.0 (RFC 6749), and not as Cognito's operations do.

extension CognitoService {
    private struct PageAnswer: Decodable {
        var id_token, access_token, refresh_token, error, error_description: String?
        var expires_in: Double?
    }

    /// Tokens of the pages: for a code, or for a refresh token.
    func tokens(
        at url: URL, _ fields: [(String, String)], authorization: String?, deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> CognitoAnswer.Tokens {
        let answer = try await form(url, fields, authorization, deadline)
        return CognitoAnswer.Tokens(
            IdToken: answer.id_token, AccessToken: answer.access_token, RefreshToken: answer.refresh_token,
            ExpiresIn: answer.expires_in)
    }

    /// Makes a refresh token worth nothing (RFC 7009).
    func revoke(
        at url: URL, _ fields: [(String, String)], authorization: String?, deadline: SuspendingClock.Instant
    ) async throws(CognitoError) {
        _ = try await form(url, fields, authorization, deadline)
    }

    private func form(
        _ url: URL, _ fields: [(String, String)], _ authorization: String?, _ deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> PageAnswer {
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = .POST
        request.headers = ["content-type": "application/x-www-form-urlencoded", "cache-control": "no-store"]
        if let authorization { request.headers.add(name: "authorization", value: authorization) }
        request.body = .bytes(ByteBuffer(string: formText(fields)))
        let received = try await send(request, deadline: deadline)
        let data = Data(received.body)
        guard let answer = try? JSONDecoder().decode(PageAnswer.self, from: data.isEmpty ? Data("{}".utf8) : data)
        else {
            throw CognitoError(
                ofStatus: received.status, else: .unusableAnswer, "The sign-in pages' answer is no JSON.",
                retryAfter: received.retryAfter)
        }
        guard (200..<300).contains(received.status), answer.error == nil else {
            throw CognitoError(
                page: answer.error, answer.error_description, status: received.status,
                retryAfter: received.retryAfter)
        }
        return answer
    }
}

extension CognitoError {
    /// What the pages' name for an error means (RFC 6749, section 5.2).
    fileprivate init(page name: String?, _ said: String?, status: Int, retryAfter: Duration?) {
        let code: Code =
            switch name {
            // The code or the refresh token has ended, was used or was revoked.
            case "invalid_grant": .signInAgain
            case "invalid_client": .clientSecret
            case "unauthorized_client", "unsupported_grant_type": .flowNotEnabled
            case "invalid_scope": .configuration
            default: Code(ofStatus: status) ?? .rejected
            }
        let name = name.map { String($0.prefix(100)) }
        self.init(
            code, said.map { String($0.prefix(500)) } ?? "The sign-in pages answered \(name ?? "\(status)").",
            serverCode: name, retryAfter: retryAfter)
    }
}
