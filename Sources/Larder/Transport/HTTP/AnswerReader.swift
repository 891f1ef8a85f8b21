package import Foundation

/// An HTTP response whose head has come.
package protocol HTTPAnswer {
    var statusCode: Int { get }
    /// For people, such as `502 Bad Gateway`.
    var statusText: String { get }
    /// The values of all headers of this name, in any case, in their order.
    func headers(named name: String) -> [String]
    /// The body, or its beginning if it is longer than `limit`; the exchange is then broken off.
    func body(upTo limit: Int) async throws(TransportError) -> (bytes: [UInt8], isWhole: Bool)
}

/// Turns an HTTP response into an answer, or into the error that says why there is none.
package struct AnswerReader {
    /// Bytes of a body above which it is given up.
    package let limit: Int
    let wallClock: @Sendable () -> Date

    package init(limit: Int, wallClock: @escaping @Sendable () -> Date) {
        self.limit = limit
        self.wallClock = wallClock
    }

    /// Bytes of a body that an error carries.
    private static let excerpt = 1_024

    package func read(_ response: some HTTPAnswer) async throws(TransportError) -> GraphQLAnswer {
        let status = response.statusCode
        do throws(TransportError) {
            try refuseRedirects(response)
            return try await (200..<300).contains(status) ? readSuccess(response) : readFailure(response)
        } catch {
            var error = error
            error.status = error.status ?? status
            throw error
        }
    }

    private func refuseRedirects(_ response: some HTTPAnswer) throws(TransportError) {
        guard (300..<400).contains(response.statusCode), let location = response.headers(named: "Location").first
        else { return }
        throw TransportError(
            .status,
            "The server redirects to \(URLText.hidingSecrets(in: location)). Redirects are not followed: set the "
                + "endpoint to that address.",
            retryAfter: retryAfter(response)
        )
    }

    private func readSuccess(_ response: some HTTPAnswer) async throws(TransportError) -> GraphQLAnswer {
        let type = response.headers(named: "Content-Type").first
        if let type, !MediaType(type).canHoldResponse {
            throw TransportError(
                .unusableAnswer,
                "The answer's content type is \(type.prefix(200)), which cannot hold a GraphQL response.",
                body: try await response.body(upTo: Self.excerpt).bytes
            )
        }
        let body = try await response.body(upTo: limit)
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

    private func readFailure(_ response: some HTTPAnswer) async throws(TransportError) -> GraphQLAnswer {
        let body = try await response.body(upTo: limit)
        if body.isWhole, ResponseEnvelope(body.bytes) != nil { return answer(body.bytes, response) }
        throw TransportError(
            .status, "The server answered with the HTTP status \(response.statusText) and no GraphQL response.",
            retryAfter: retryAfter(response), body: Array(body.bytes.prefix(Self.excerpt))
        )
    }

    private func answer(_ body: [UInt8], _ response: some HTTPAnswer) -> GraphQLAnswer {
        let control = CacheControl(response.headers(named: "Cache-Control"), age: response.headers(named: "Age"))
        return GraphQLAnswer(
            body: body, status: response.statusCode, retryAfter: retryAfter(response), age: control.age,
            maxAge: control.maxAge)
    }

    private func retryAfter(_ response: some HTTPAnswer) -> Duration? {
        guard let field = response.headers(named: "Retry-After").first else { return nil }
        return RetryAfter.duration(field, serverDate: response.headers(named: "Date").first, wallClock: wallClock)
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }
}
