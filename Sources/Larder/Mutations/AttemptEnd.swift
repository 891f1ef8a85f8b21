internal import Foundation
internal import LarderGraphQL
internal import LarderOperations
internal import LarderRecords

/// What came of sending a mutation.
enum AttemptEnd {
    /// The server carried it out; the body is its answer, which was read along what was sent.
    case answered([UInt8], ParsedResponse, to: MutationRequest)
    /// It had no effect, and may have one later.
    case notTaken(MutationFailure, retryAfter: Duration?)
    /// Nobody knows whether it had an effect.
    case unknown(MutationFailure, retryAfter: Duration?)
    /// The server does not know the user; nothing of the partition will go until somebody signs in.
    case notSignedIn(MutationFailure)
    case conflict(MutationFailure)
    /// The server will never take it as it is.
    case rejected(MutationFailure)
    /// The runner was stopped meanwhile; whoever runs next finds it in flight.
    case stopped
}

extension AttemptEnd {
    /// - Parameter isCancelled: Whether the runner's task is. If it is not, something else was, which is as good as a
    ///   lost answer.
    init(_ error: TransportError, at time: Date, isCancelled: Bool) {
        func failure(_ kind: MutationFailure.Class) -> MutationFailure {
            MutationFailure(kind, code: error.code.rawValue, message: error.description, time: time)
        }
        switch error.code {
        case .cancelled where isCancelled: self = .stopped
        case .unreachable, .insecure, .notPrepared: self = .notTaken(failure(.offline), retryAfter: error.retryAfter)
        case .unusableRequest: self = .rejected(failure(.rejected))
        case .status: self = Self.status(error.status ?? 0, failure, retryAfter: error.retryAfter)
        // It was sent, or may have been: the deadline passed, the connection broke, the answer cannot be read.
        default: self = .unknown(failure(.outcomeUnknown), retryAfter: error.retryAfter)
        }
    }

    private static func status(
        _ status: Int, _ failure: (MutationFailure.Class) -> MutationFailure, retryAfter: Duration?
    ) -> AttemptEnd {
        switch status {
        case 401, 407: .notSignedIn(failure(.notSignedIn))
        // RFC 9110, 15.6.4, RFC 6585, 4, and RFC 8470, 5.2: the server did not take it up.
        case 425, 429, 503: .notTaken(failure(.throttled), retryAfter: retryAfter)
        case 409, 412: .conflict(failure(.conflict))
        case 408, 500...: .unknown(failure(.serverFault), retryAfter: retryAfter)
        case 400..<500: .rejected(failure(.rejected))
        default: .unknown(failure(.outcomeUnknown), retryAfter: retryAfter)
        }
    }

    init(_ answer: GraphQLAnswer, to request: MutationRequest, at time: Date) {
        let parsed: ParsedResponse
        do { parsed = try ParsedResponse.parse(answer.body, along: request.operation.layout) } catch {
            // It is an answer, but not to this: nobody knows what the server did, and it may say the same for ever.
            self = .unknown(
                MutationFailure(
                    .serverFault, code: error.code.rawValue, message: "the answer does not fit: \(error.message)",
                    details: Array(answer.body.prefix(1024)), time: time),
                retryAfter: answer.retryAfter)
            return
        }
        guard let first = parsed.errors.first, !parsed.hasAnswers else {
            self = parsed.hasData
                ? .answered(answer.body, parsed, to: request)
                : .rejected(MutationFailure(.rejected, message: "the server answered null", time: time))
            return
        }
        func failure(_ kind: MutationFailure.Class) -> MutationFailure {
            MutationFailure(
                kind, code: first.kind, message: first.message,
                details: Value.list(parsed.errors.map(\.value)).json, time: time)
        }
        self = switch first.kind.map(ServerErrorKind.init) ?? .other {
        case .notSignedIn: .notSignedIn(failure(.notSignedIn))
        case .throttled: .notTaken(failure(.throttled), retryAfter: answer.retryAfter)
        case .fault: .unknown(failure(.serverFault), retryAfter: answer.retryAfter)
        case .conflict: .conflict(failure(.conflict))
        case .other: .rejected(failure(.rejected))
        }
    }
}

/// What the names mean that servers give to errors, in `extensions.code` or AppSync's `errorType`.
private enum ServerErrorKind {
    case notSignedIn, throttled, fault, conflict, other

    init(_ name: String) {
        switch name.split(separator: ":").last.map(String.init) ?? name {
        case "UNAUTHENTICATED", "Unauthenticated", "UnauthorizedException", "TokenExpiredException":
            self = .notSignedIn
        case "THROTTLED", "RATE_LIMITED", "TOO_MANY_REQUESTS", "ThrottlingException", "LimitExceededException":
            self = .throttled
        case "INTERNAL_SERVER_ERROR", "InternalFailure", "InternalFailureException", "SERVICE_UNAVAILABLE",
            "ServiceUnavailableException":
            self = .fault
        case "CONFLICT", "ConflictUnhandled", "ConditionalCheckFailedException": self = .conflict
        default: self = .other
        }
    }
}
