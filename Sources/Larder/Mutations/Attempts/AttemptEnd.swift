import Foundation
import LarderGraphQL
import LarderOperations
import LarderRecords

/// What came of sending a mutation, as an attempt reports it.
struct AttemptEnd {
    /// The server's answer, which was read along what was sent.
    struct Answer {
        let body: [UInt8]
        let parsed: ParsedResponse
        let request: MutationRequest
    }

    enum Outcome {
        /// The mutation took effect.
        case answer(Answer)
        /// Why it did not, or why that is not known.
        case failure(MutationFailure)
    }

    let verdict: Verdict
    let outcome: Outcome
    /// How long the server asked to be left alone.
    var retryAfter: Duration?
    /// Whether nothing was tried.
    var isUnsent = false

    init(_ effect: Verdict.Effect, _ failure: MutationFailure, isUnsent: Bool = false) {
        verdict = Verdict(effect)
        self.isUnsent = isUnsent
        outcome = .failure(failure)
    }

    /// The runner was to stop, and nothing was sent.
    init(stoppedAt time: Date) {
        self.init(
            .none(.offline),
            MutationFailure(.offline, message: "The runner was stopped before it was sent", time: time),
            isUnsent: true)
    }

    init(_ error: TransportError, _ refusals: ServerRefusals, at time: Date) {
        verdict =
            Evidence(
                phase: error.phase, isUnusable: error.code == .unusableRequest,
                isWithoutUser: error.code == .notSignedIn, status: error.status, answer: .init(error.code),
                refusals: refusals
            ).verdict
        outcome = .failure(
            MutationFailure(verdict.failureClass, code: error.code.rawValue, message: error.message, time: time))
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
            outcome = .failure(
                MutationFailure(
                    verdict.failureClass, code: error.code.rawValue,
                    message: "The answer does not fit: \(error.message)", details: Array(answer.body.prefix(1024)),
                    time: time))
            return
        }
        evidence.answer = .response(Evidence.Response(parsed))
        verdict = evidence.verdict
        guard verdict.effect != .took else {
            outcome = .answer(Answer(body: answer.body, parsed: parsed, request: request))
            return
        }
        let first = parsed.errors.first
        outcome = .failure(
            MutationFailure(
                verdict.failureClass, code: first?.kind, message: first?.message ?? "the server answered null",
                details: parsed.errors.isEmpty ? nil : parsed.errorList, time: time))
    }
}

/// What follows from an attempt's end for its mutation, as the runner decides.
enum AttemptConsequence {
    /// The mutation took effect, as this body says; with what was read of it, unless the program's check gave it.
    case answered([UInt8], AttemptEnd.Answer?)
    /// It is sent again: at once, or not before a time.
    case retry(MutationFailure, at: Date?, leaving: RemainingDoubt)
    /// It had no effect, and is sent again with other variables and under another key.
    case revised(MutationFailure, at: Date?, variables: [UInt8])
    case setAside(MutationFailure)
    /// The program takes what the server has, and the mutation is gone.
    case discarded(MutationFailure)

    /// Whether the mutation is sent again.
    var isRetry: Bool {
        switch self {
        case .retry, .revised: true
        case .answered, .setAside, .discarded: false
        }
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
