public import Foundation
public import Larder

/// Signs requests to AWS services for which Larder has no transport, such as API Gateway, with the cloud credentials of
/// a session (Signature Version 4).
///
/// ```swift
/// let signer = AWSRequestSigner(service: "execute-api", region: "eu-west-1", session: try app.session)
/// var request = URLRequest(url: url)
/// for header in try await signer.headers(to: url, within: .seconds(10)) {
///     request.setValue(header.value, forHTTPHeaderField: header.name)
/// }
/// ```
///
/// The session refreshes the credentials when they are about to end. S3 signs by other rules: `S3Transport` does that.
public struct AWSRequestSigner: Sendable {
    /// The service's name in signatures, such as `execute-api`.
    package let service: String
    /// The cloud's region.
    package let region: String
    private let session: @Sendable () throws -> Session
    private let wallClock: @Sendable () -> Date

    /// - Parameters:
    ///   - service: The name by which the service is signed for, such as `execute-api`.
    ///   - region: The region of the service, such as `eu-west-1`.
    ///   - session: Asked for with each request: `try app.session`.
    public init(service: String, region: String, session: @autoclosure @escaping @Sendable () throws -> Session) {
        self.init(service: service, region: region, session: session, wallClock: { Date() })
    }

    package init(
        service: String, region: String, session: @escaping @Sendable () throws -> Session,
        wallClock: @escaping @Sendable () -> Date
    ) {
        self.service = service
        self.region = region
        self.session = session
        self.wallClock = wallClock
    }

    /// The headers that sign a request: `x-amz-date`, `x-amz-security-token` where the credentials have a token, and
    /// `authorization`. They are good for some minutes.
    ///
    /// - Parameters:
    ///   - url: The request's URL.
    ///   - method: The request's method.
    ///   - headers: Others that the signature is to cover; `host` is always covered. They have to be sent as they are.
    ///   - body: All of it.
    ///   - time: How long the credentials may be waited for.
    /// - Throws: As `Session.cloudCredentials`.
    public func headers(
        to url: URL, method: String = "GET", headers: [GraphQLRequest.Header] = [], body: [UInt8] = [],
        within time: Duration
    ) async throws -> [GraphQLRequest.Header] {
        let credentials = try await session().cloudCredentials(within: time)
        return RequestSignature.headers(
            method, to: url, headers, body: body, credentials, service: service, region: region, at: wallClock())
    }
}
