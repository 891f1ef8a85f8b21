import Foundation
import LarderGraphQL
import LarderOperations
import LarderRecords

/// What came of sending a mutation.
struct AttemptEnd {
    let verdict: Verdict
    /// Why it did not take effect; nil where it did.
    let failure: MutationFailure?
    /// How long the server asked to be left alone.
    var retryAfter: Duration?
    /// The server's answer, which was read along what was sent, where the mutation took effect.
    var answer: (body: [UInt8], parsed: ParsedResponse, request: MutationRequest)?

    /// Whether nothing was tried.
    var isUnsent = false

    init(_ effect: Verdict.Effect, _ failure: MutationFailure, isUnsent: Bool = false) {
        verdict = Verdict(effect)
        self.isUnsent = isUnsent
        self.failure = failure
    }

    init(_ error: TransportError, _ refusals: ServerRefusals, at time: Date) {
        verdict =
            Evidence(
                phase: error.phase, isUnusable: error.code == .unusableRequest,
                isWithoutUser: error.code == .notSignedIn, status: error.status, answer: .init(error.code),
                refusals: refusals
            ).verdict
        failure = MutationFailure(
            verdict.failureClass, code: error.code.rawValue, message: error.description, time: time)
        retryAfter = error.retryAfter
    }

    init(
        _ answer: GraphQLAnswer, to request: MutationRequest, _ refusals: ServerRefusals, at time: Date
    ) {
        retryAfter = answer.retryAfter
        var evidence = Evidence(status: answer.status, answer: .unreadable, refusals: refusals)
        let parsed: ParsedResponse
        do { parsed = try ParsedResponse.parse(answer.body, along: request.operation.layout) } catch {
            // It is an answer, but not to this: what the server did is unknown, and it may say the same for ever.
            evidence.isForeign = !answer.isGraphQLResponse
            verdict = evidence.verdict
            failure = MutationFailure(
                verdict.failureClass, code: error.code.rawValue, message: "The answer does not fit: \(error.message)",
                details: Array(answer.body.prefix(1024)), time: time)
            return
        }
        evidence.answer = .response(Evidence.Response(parsed))
        verdict = evidence.verdict
        guard verdict.effect != .took else {
            failure = nil
            self.answer = (answer.body, parsed, request)
            return
        }
        let first = parsed.errors.first
        failure = MutationFailure(
            verdict.failureClass, code: first?.kind, message: first?.message ?? "the server answered null",
            details: parsed.errors.isEmpty ? nil : parsed.errorList, time: time)
    }
}

extension Evidence.Answer {
    fileprivate init(_ code: TransportError.Code) {
        self =
            switch code {
            case .status: .status
            case .unusableAnswer: .foreign
            default: .lost
            }
    }
}

extension GraphQLAnswer {
    /// Whether the body is an object with data, or with a list of errors.
    var isGraphQLResponse: Bool {
        guard case .object(let members)? = try? Value(json: body) else { return false }
        if case .list(let errors)? = members["errors"], !errors.isEmpty { return true }
        return members["data"] != nil
    }
}

extension Evidence.Response {
    init(_ parsed: ParsedResponse) {
        data = parsed.hasAnswers ? .answered : parsed.hasData ? .unanswered : .none
        errors = parsed.errors.map { error in
            // A path of no steps names no field.
            Failure(
                kind: error.kind.map(ServerErrorKind.init), name: error.kind,
                path: error.path.flatMap { $0.components.isEmpty ? nil : $0 })
        }
        fields = parsed.rootFields
    }
}

extension Verdict {
    /// The kind of failure that is noted with a mutation.
    var failureClass: MutationFailure.Class {
        switch effect {
        case .none(.offline): .offline
        case .none(.throttled): .throttled
        case .none(.notSignedIn): .notSignedIn
        case .conflict: .conflict
        case .rejected: .rejected
        case .unknown(.busy), .unknown(.fault): .serverFault
        case .took, .unknown(.lost), .unknown(.final): .outcomeUnknown
        }
    }
}
