public import AsyncHTTPClient
public import Larder
public import LarderHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Queries, mutations and subscriptions to an AppSync API.
///
/// - **The proof is got for each request**, by its deadline, and never waits for a sign-in: where no user is signed in,
///   the request ends at once with `.notSignedIn`, and nothing was sent.
/// - **A refused proof is refreshed once**: where the API answers that it does not take the proof (401, or 403 for a
///   signature's credentials), another is asked for, and the request sent once more. Such a refusal comes before
///   anything is carried out, so that a mutation is not repeated. A rule that forbids something (`Unauthorized`, with
///   the status 200) leads to no refresh.
/// - **A wrong clock is corrected**: where the API refuses a signature and says another time than this machine's, the
///   request is signed by that time and sent once more. So are all later ones, and connections for subscriptions.
/// - **Errors keep what AppSync says**: `errorType`, `errorInfo` and `data` of each error; see ``AppSyncErrorType``.
/// - Everything else is as with ``HTTPTransport``, which carries the requests.
public final class AppSyncTransport: GraphQLTransport {
    /// What proves who asks.
    package let authorization: AppSyncAuthorization

    private let http: HTTPTransport
    private let wallClock: @Sendable () -> Date
    private let signing: SigningClock

    /// Where requests are sent.
    package var endpoint: URL { http.endpoint }
    /// As the options say.
    public var idempotency: Idempotency? { http.idempotency }
    /// As the options say.
    public var refusals: ServerRefusals { http.refusals }
    /// The endpoint.
    public var server: String? { http.server }

    /// A transport to an API.
    ///
    /// - Parameters:
    ///   - endpoint: The API's URL, with `/graphql`; also a custom domain's.
    ///   - authorization: How the API is told who asks.
    ///   - client: As of ``HTTPTransport``: nil for one of the transport's own.
    ///   - options: As of ``HTTPTransport``. AppSync knows neither persisted queries nor GET.
    public init(
        endpoint: URL, authorization: AppSyncAuthorization, client: HTTPClient? = nil,
        options: HTTPTransport.Options = .init()
    ) {
        self.authorization = authorization
        wallClock = options.wallClock
        signing = SigningClock(wallClock: options.wallClock)
        http = HTTPTransport(endpoint: endpoint, client: client, options: options)
    }

    /// A transport to an environment's API.
    ///
    /// - Parameters:
    ///   - session: Gives the user pool's tokens or the cloud's credentials. It is asked for with each request, since a
    ///     session is over when its partition is parked: `session: try app.session`.
    ///   - authorization: What proves who asks; nil for what the environment says. Where it says nothing: its API key,
    ///     otherwise a token of its user pool, otherwise its identity pool's credentials.
    ///   - tokens: Gives the tokens of another identity provider or for a Lambda function.
    ///   - client: As above.
    /// - Throws: `.environment` where something is missing, with what.
    public convenience init(
        environment: BackendEnvironment,
        session: @autoclosure @escaping @Sendable () throws -> Session,
        authorization: BackendEnvironment.Authorization? = nil, tokens: AppSyncAuthorization.Source<String>? = nil,
        client: HTTPClient? = nil, options: HTTPTransport.Options = .init()
    ) throws(LarderError) {
        try environment.validate()
        let authorization = try AppSyncAuthorization(
            authorization, of: environment, session: session, tokens: tokens)
        self.init(endpoint: environment.api.url, authorization: authorization, client: client, options: options)
    }

    /// Runs `body` with a transport whose client is made for it and shut down when it returns or throws.
    package static func withTransport<Result>(
        to endpoint: URL, authorization: AppSyncAuthorization, options: HTTPTransport.Options = .init(),
        isolation: isolated (any Actor)? = #isolation,
        _ body: (AppSyncTransport) async throws -> Result
    ) async throws -> Result {
        let configuration = HTTPTransport.clientConfiguration(for: options)
        return try await HTTPClient.withHTTPClient(configuration: configuration) { client in
            try await body(
                AppSyncTransport(endpoint: endpoint, authorization: authorization, client: client, options: options))
        }
    }

    /// Sends a query or a mutation.
    ///
    /// - Throws: `.notSignedIn` where a user is needed and none is signed in; `.notPrepared` where the proof cannot be
    ///   had for another reason, which is the `cause`; otherwise as ``HTTPTransport/send(_:within:)``.
    public func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let deadline = SuspendingClock.now + time
        switch authorization {
        case .apiKey(let key):
            return try await http.send(request.adding("x-api-key", key), within: .until(deadline))
        case .iam(let region, let source):
            return try await send(request, by: source, deadline) { [signing] credentials in
                let signer = RequestSigner(
                    identity: "\(region) \(credentials.accessKeyID) \(signing.offset)", heard: signing.hear
                ) { url, headers, body in
                    RequestSignature.headers(
                        to: url, headers, body: body, credentials, service: "appsync", region: region, at: signing.now)
                }
                return (request, signer)
            }
        case .userPool(let source), .openIDConnect(let source):
            return try await send(request, by: source, deadline) { (request.adding("authorization", $0), nil) }
        case .lambda(let source):
            return try await send(request, by: source, deadline) { token throws(TransportError) in
                guard token.count <= 2_048 else {
                    throw TransportError(
                        .notPrepared, "The token has \(token.count) characters, and AppSync takes 2,048 for a Lambda.")
                }
                return (request.adding("authorization", token), nil)
            }
        }
    }

    /// Sends a request with a proof, and once more with another where the API does not take it.
    private func send<Proof: Sendable>(
        _ request: GraphQLRequest, by source: @escaping AppSyncAuthorization.Source<Proof>,
        _ deadline: SuspendingClock.Instant,
        proven: (Proof) throws(TransportError) -> (GraphQLRequest, RequestSigner?)
    ) async throws(TransportError) -> GraphQLAnswer {
        let proof = try await prepared(by: deadline) { try await source(nil, .until(deadline)) }
        let outcome = try await outcome(of: proof, deadline, proven)
        guard outcome.isRefusalOfProof else { return try outcome.get() }
        let other: Proof
        do throws(TransportError) {
            other = try await prepared(by: deadline) { try await source(proof, .until(deadline)) }
        } catch {
            // The API's refusal says more than that there is no other proof.
            if error.code == .notSignedIn { return try outcome.get() }
            throw error
        }
        return try await self.outcome(of: other, deadline, proven).get()
    }

    /// Sends a request with a proof, and once more where the API refuses it for the time of its signature.
    private func outcome<Proof: Sendable>(
        of proof: Proof, _ deadline: SuspendingClock.Instant,
        _ proven: (Proof) throws(TransportError) -> (GraphQLRequest, RequestSigner?)
    ) async throws(TransportError) -> Result<GraphQLAnswer, TransportError> {
        let offset = signing.offset
        let (request, signer) = try proven(proof)
        let outcome = await outcome(of: request, signer, deadline)
        guard signer != nil, outcome.isRefusalOfSignature, signing.correct(from: offset) else { return outcome }
        let (again, otherSigner) = try proven(proof)
        return await self.outcome(of: again, otherSigner, deadline)
    }

    private func outcome(
        of request: GraphQLRequest, _ signer: RequestSigner?, _ deadline: SuspendingClock.Instant
    ) async -> Result<GraphQLAnswer, TransportError> {
        do throws(TransportError) {
            return .success(try await http.send(request, deadline: deadline, signer: signer))
        } catch {
            return .failure(error)
        }
    }
}

extension AppSyncTransport: SubscriptionTransport {
    /// As the options say.
    public var pacing: SubscriptionPacing { http.pacing }
    /// A null says nothing, unless the options say otherwise: AppSync sends what the mutation did not select as null.
    public var nullsInEvents: NullsInEvents { http.options.subscriptions.nulls ?? .ignore }

    /// Carries subscriptions by AppSync's real-time protocol.
    ///
    /// The proof is got for the handshake and for each start. Where the API does not take that of the handshake, another
    /// is got, and the handshake made once more.
    ///
    /// - Throws: `.notSignedIn` where no proof can be had, or the API does not take it; otherwise as
    ///   ``HTTPTransport/carry(_:openedWithin:)``.
    public func carry(
        _ line: SubscriptionLine, openedWithin time: Duration
    ) async throws(TransportError) {
        let deadline = SuspendingClock.now + time
        let offset = signing.offset
        let first = AppSyncRealTime(endpoint, authorization, pacing, wallClock: wallClock, signing: signing)
        do throws(TransportError) { return try await carry(line, by: first, deadline) } catch {
            // There is no other key.
            if case .apiKey = authorization { throw error }
            var refused = first.refusedAtOpening
            guard error.code == .notSignedIn, refused != nil else { throw error }
            // The credentials are good where the time was wrong.
            if case .iam = authorization, signing.correct(from: offset) { refused = nil }
            let second = AppSyncRealTime(
                endpoint, authorization, pacing, refused: refused, wallClock: wallClock, signing: signing)
            try await carry(line, by: second, deadline)
        }
    }

    private func carry(
        _ line: SubscriptionLine, by dialect: AppSyncRealTime, _ deadline: SuspendingClock.Instant
    ) async throws(TransportError) {
        let connection = try await http.socket(try await dialect.connection(by: deadline), openedBy: deadline)
        try await dialect.carry(http.noting(line), over: connection, on: http.client.eventLoopGroup, openedBy: deadline)
    }
}

extension GraphQLRequest {
    /// The request with a header of the transport's. The program's own of that name counts for more.
    fileprivate func adding(_ name: String, _ value: String) -> GraphQLRequest {
        guard !headers.contains(where: { $0.name.lowercased() == name }) else { return self }
        var request = self
        request.headers.append(Header(name: name, value: value))
        return request
    }
}

extension Result<GraphQLAnswer, TransportError> {
    /// Whether the API has refused the proof of who asks, before it did anything.
    fileprivate var isRefusalOfProof: Bool {
        status == 401 || isForbidden(AppSyncErrorType.refusalsOfProofs)
    }

    /// Whether the API has refused a signature, of which the time may be the reason.
    fileprivate var isRefusalOfSignature: Bool { isForbidden(AppSyncErrorType.refusalsOfSignatures) }

    private var status: Int? {
        switch self {
        case .success(let answer): answer.status
        case .failure(let error): error.status
        }
    }

    private func isForbidden(_ kinds: [String]) -> Bool {
        let body =
            switch self {
            case .success(let answer): answer.body
            case .failure(let error): error.body
            }
        guard status == 403, let refusal = try? JSONDecoder().decode(Refusal.self, from: Data(body)) else {
            return false
        }
        return refusal.errors.contains { error in
            kinds.contains { AppSyncErrorType(rawValue: $0).matches(error.errorType) }
        }
    }
}

extension AppSyncErrorType {
    /// AWS's names for the refusal of a proof, be it a token or the credentials of a signature.
    static let refusalsOfProofs = [
        unauthorizedException.rawValue, "ExpiredTokenException", "UnrecognizedClientException",
    ]
    /// What AWS calls a signature that it does not take, be it for its time or for another reason.
    static let refusalsOfSignatures = [
        "InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired", "RequestTimeTooSkewed",
    ]
}

/// As much of an answer as says whether credentials were refused.
private struct Refusal: Decodable {
    struct Entry: Decodable { var errorType: String? }
    var errors: [Entry]
}
