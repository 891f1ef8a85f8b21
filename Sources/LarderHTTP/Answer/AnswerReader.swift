import AsyncHTTPClient
import Foundation
import Larder
import NIOCore
import NIOHTTP1

/// Turns an HTTP response into an answer, or into the error that says why there is none.
struct AnswerReader {
    /// Bytes of a body above which it is given up.
    let limit: Int
    let wallClock: @Sendable () -> Date

    /// Bytes of a body that an error carries.
    private static let excerpt = 1_024

    func read(_ response: HTTPClientResponse) async throws(TransportError) -> GraphQLAnswer {
        let status = Int(response.status.code)
        do throws(TransportError) {
            try refuseRedirects(response)
            return try await (200..<300).contains(status) ? readSuccess(response) : readFailure(response)
        } catch {
            var error = error
            error.status = error.status ?? status
            throw error
        }
    }

    private func refuseRedirects(_ response: HTTPClientResponse) throws(TransportError) {
        if let first = response.history.first, response.history.count > 1 {
            throw TransportError(
                .status,
                "The HTTP client followed a redirect, which may have dropped the operation; give it a configuration "
                    + "that disallows redirects.",
                status: Int(first.responseHead.status.code)
            )
        }
        guard (300..<400).contains(Int(response.status.code)),
            let location = response.headers.first(name: "Location")
        else { return }
        throw TransportError(
            .status,
            "The server redirects to \(URLText.hidingUsers(in: location)). Redirects are not followed: set the "
                + "endpoint to that address.",
            retryAfter: retryAfter(response)
        )
    }

    private func readSuccess(_ response: HTTPClientResponse) async throws(TransportError) -> GraphQLAnswer {
        let type = response.headers.first(name: "Content-Type")
        if let type, !MediaType(type).canHoldResponse {
            throw TransportError(
                .unusableAnswer,
                "The answer's content type is \(type.prefix(200)), which cannot hold a GraphQL response.",
                body: try await body(response, upTo: Self.excerpt).bytes
            )
        }
        let body = try await body(response, upTo: limit)
        guard body.isWhole else {
            throw TransportError(
                .unusableAnswer, "The answer is longer than the \(limit) bytes that are allowed.",
                body: Array(body.bytes.prefix(Self.excerpt))
            )
        }
        // Without a content type the body has to look like a JSON object.
        guard type != nil || body.bytes.first(where: { !Self.isSpace($0) }) == UInt8(ascii: "{") else {
            throw TransportError(
                .unusableAnswer, "The answer has no content type and is not a JSON object.",
                body: Array(body.bytes.prefix(Self.excerpt))
            )
        }
        return answer(body.bytes, response)
    }

    private func readFailure(_ response: HTTPClientResponse) async throws(TransportError) -> GraphQLAnswer {
        let body = try await body(response, upTo: limit)
        if body.isWhole, ResponseEnvelope(body.bytes) != nil { return answer(body.bytes, response) }
        throw TransportError(
            .status, "The server answered with the HTTP status \(response.status) and no GraphQL response.",
            retryAfter: retryAfter(response), body: Array(body.bytes.prefix(Self.excerpt))
        )
    }

    private func answer(_ body: [UInt8], _ response: HTTPClientResponse) -> GraphQLAnswer {
        let control = CacheControl(response.headers["Cache-Control"], age: response.headers["Age"])
        return GraphQLAnswer(
            body: body, status: Int(response.status.code), retryAfter: retryAfter(response), age: control.age,
            maxAge: control.maxAge)
    }

    private func retryAfter(_ response: HTTPClientResponse) -> Duration? {
        guard let field = response.headers.first(name: "Retry-After") else { return nil }
        return RetryAfter.duration(field, serverDate: response.headers.first(name: "Date"), wallClock: wallClock)
    }

    /// The body, or its beginning if it is longer than `limit`; the rest is then refused by closing the exchange.
    private func body(
        _ response: HTTPClientResponse, upTo limit: Int
    ) async throws(TransportError) -> (bytes: [UInt8], isWhole: Bool) {
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

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }
}
