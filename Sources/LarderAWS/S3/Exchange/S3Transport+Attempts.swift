import AsyncHTTPClient
import Larder
import LarderHTTP
import NIOCore
import NIOHTTP1

extension S3Transport {
    /// A request with its address, its time and its signature.
    struct Signed {
        var http: HTTPClientRequest
        /// What signed it, and so the chunks of its body.
        var signature: SignatureV4
        /// Its own signature: what the first chunk's follows.
        var seed: String
    }

    /// Sends a request, and once more where the storage says that its bucket is in another region or its time is wrong.
    func attempt<Answer>(
        _ request: S3Request, payload: PayloadHash? = nil, clock: ExchangeClock,
        _ send: (Signed) async throws(S3Refusal) -> Answer
    ) async throws(ObjectError) -> Answer {
        var region = region(of: request.bucket, said: request.region)
        var (hasMoved, hasCorrectedTime) = (false, false)
        var refused: Credentials.CloudCredentials?
        while true {
            let signed = try await sign(
                request, region: region, payload: payload, refused: refused, deadline: clock.deadline)
            clock.moved()
            do throws(S3Refusal) {
                let answer = try await send(signed)
                if hasMoved { learn(region: region, of: request.bucket) }
                return answer
            } catch {
                var refusal = error
                if refusal.isElsewhere, let named = refusal.region, named != region, !hasMoved {
                    (region, hasMoved) = (named, true)
                } else if refusal.error.code == .clockSkew, let time = refusal.serverTime, !hasCorrectedTime {
                    learn(serverTime: time)
                    hasCorrectedTime = true
                } else if refusal.isOfCredentials, renewsCredentials, refused == nil {
                    refused = signed.signature.credentials
                } else {
                    if refusal.disprovesRegion {
                        forget(region: region, of: request.bucket)
                    } else if hasMoved, refusal.error.status != nil {
                        learn(region: region, of: request.bucket)
                    }
                    if refusal.isElsewhere, refusal.error.code == .rejected { refusal.error.code = .wrongRegion }
                    throw refusal.error
                }
            }
        }
    }

    /// The credentials of this moment.
    func credentials(
        by deadline: SuspendingClock.Instant, otherThan refused: Credentials.CloudCredentials? = nil
    ) async throws(ObjectError) -> Credentials.CloudCredentials {
        do {
            return try await credentialSource(refused, deadline)
        } catch {
            // A transfer waits for a sign-in then, as where the storage does not take the credentials.
            let wantsSignIn = (error as? LarderError)?.remedy == .signIn
            throw ObjectError(
                ofCaller: error, wantsSignIn ? .invalidCredentials : .notPrepared, "The credentials could not be had.")
        }
    }

    private func sign(
        _ request: S3Request, region: String, payload: PayloadHash?, refused: Credentials.CloudCredentials?,
        deadline: SuspendingClock.Instant
    ) async throws(ObjectError) -> Signed {
        let address = try endpoint.address(bucket: request.bucket, key: request.key, region: region)
        let credentials = try await credentials(by: deadline, otherThan: refused)
        let signature = SignatureV4(credentials: credentials, time: signingTime, region: region)
        let payload = payload ?? .of(request.content)
        var headers =
            request.headers + [
                ("host", address.host), ("x-amz-content-sha256", payload.headerValue),
                ("x-amz-date", signature.time.stamp),
            ]
        if let token = credentials.tokenToSend { headers.append(("x-amz-security-token", token)) }
        let canonical = CanonicalRequest(
            method: request.method.rawValue, path: address.path, query: request.query, headers: headers,
            payloadHash: payload)
        let seed = signature.signature(of: canonical)
        headers.append(("authorization", signature.authorization(of: canonical, signature: seed)))

        let query = request.query.isEmpty ? "" : "?" + CanonicalRequest.queryText(request.query)
        var http = HTTPClientRequest(url: "\(address.scheme)://\(address.host)\(address.path)\(query)")
        http.method = request.method
        http.headers = HTTPHeaders(headers.map { ($0.name, $0.value) })
        // Not signed: what lies between may change it.
        http.headers.add(name: "accept-encoding", value: "identity")
        if !request.content.isEmpty { http.body = .bytes(ByteBuffer(bytes: request.content)) }
        do throws(TransportError) { try http.requireBoundedHead() } catch { throw ObjectError(ofClient: error) }
        return Signed(http: http, signature: signature, seed: seed)
    }

    /// Sends a request, and waits for the head of its answer. The caller keeps the time.
    func execute(_ request: HTTPClientRequest) async throws(S3Refusal) -> HTTPClientResponse {
        let response: HTTPClientResponse
        do {
            response = try await client.execute(request, deadline: .now() + .hours(24 * 365))
        } catch {
            throw S3Refusal(ObjectError(ofClient: error))
        }
        guard response.history.count <= 1 else {
            throw S3Refusal(.redirectFollowed(status: Int(response.status.code)))
        }
        return response
    }

    /// The whole answer, or the refusal that it is.
    func answer(_ response: HTTPClientResponse, clock: ExchangeClock) async throws(S3Refusal) -> S3Answer {
        clock.moved()
        var answer = S3Answer(status: Int(response.status.code), headers: response.headers, body: [])
        let isSuccess = (200..<300).contains(answer.status)
        do {
            // Its bytes do not keep the exchange alive: they could come one by one.
            for try await chunk in response.body {
                guard answer.body.count + chunk.readableBytes <= options.maximumAnswerSize else {
                    throw ObjectError(
                        .unusableAnswer, "The answer is longer than the \(options.maximumAnswerSize) bytes allowed.",
                        status: answer.status, requestID: answer.headers.requestID, hostID: answer.headers.hostID)
                }
                answer.body += chunk.readableBytesView
            }
            try Task.checkCancellation()
        } catch {
            // Of a refusal the status at least is known.
            if isSuccess || Task.isCancelled { throw S3Refusal(ObjectError(ofClient: error)) }
        }
        guard isSuccess else { throw S3Refusal(answer: answer, wallClock: options.wallClock) }
        return answer
    }

    /// One exchange that carries no object's bytes.
    func ask<Answer: Sendable>(
        _ request: S3Request, deadline: SuspendingClock.Instant,
        _ read: @escaping @Sendable (S3Answer) throws(S3Refusal) -> Answer
    ) async throws(ObjectError) -> Answer {
        let clock = ExchangeClock(deadline: deadline)
        return try await clock.limiting { () async throws(ObjectError) -> Answer in
            try await self.attempt(request, clock: clock) { signed throws(S3Refusal) in
                let response = try await self.execute(signed.http)
                return try read(try await self.answer(response, clock: clock))
            }
        }
    }
}

extension S3Refusal {
    /// Whether the credentials have ended or are not known, so that others may do.
    fileprivate var isOfCredentials: Bool {
        error.code == .expiredCredentials || ["InvalidAccessKeyId", "InvalidToken"].contains(error.serverCode)
    }

    /// Whether it was refused because of where it was sent.
    fileprivate var isElsewhere: Bool {
        error.code == .wrongRegion || error.status == 307
            || (error.status == 400 && error.serverCode == nil && region != nil)
    }

    /// Whether the bucket may be in another region than the one that the request was signed for and sent to.
    fileprivate var disprovesRegion: Bool {
        isElsewhere || [.invalidCredentials, .unreachable, .insecure].contains(error.code)
    }
}
