import LarderRecords

/// What an exchange has shown, from which alone follows what became of its mutation.
///
/// **Rule.** That a mutation had no effect is proven and never guessed: nothing had left; a status that is sent before
/// a server acts (401, 425, 429, those of middleboxes, and what the transport declares for its server); a GraphQL
/// *request error*. The specification (October 2021, 7.1) lets execution begin only after a request has no errors: then
/// there is no `data` entry, or, as some servers have it, a null one, and no error has a path. Whatever shows that
/// execution had begun outweighs the status.
///
/// Whether the mutation is sent again follows from that in `MutationRunner.consequence`.
struct Evidence: Sendable, Hashable {
    /// What came back.
    enum Answer: Sendable, Hashable {
        /// Nothing whole.
        case lost
        /// Something that cannot hold a GraphQL response, such as a page.
        case foreign
        /// A status, and a body that is no GraphQL response.
        case status
        /// Something that does not fit what was sent.
        case unreadable
        case response(Response)
    }

    /// What counts of a GraphQL response.
    struct Response: Sendable, Hashable {
        enum Data: Sendable, Hashable {
            /// Null, or no entry.
            case none
            /// An object in which every field of the mutation is null.
            case unanswered
            /// An object in which a field of the mutation has a value.
            case answered
        }

        struct Failure: Sendable, Hashable {
            var kind: ServerErrorKind?
            /// The kind as the server names it.
            var name: String?
            /// The keys and positions; nil where the error names no field.
            var path: ResponsePath?
        }

        var data: Data
        var errors: [Failure]
        /// The keys of the mutation's fields.
        var fields: Set<String>
    }

    var phase = TransportError.Phase.sending
    /// Whether the request can never be sent as it is.
    var isUnusable = false
    /// Whether the request was not sent because no user is signed in.
    var isWithoutUser = false
    var status: Int?
    var answer: Answer
    /// Whether what does not fit is no GraphQL response at all.
    var isForeign = false
    var refusals = ServerRefusals()

    /// What follows.
    var verdict: Verdict {
        if phase == .beforeSending {
            if isWithoutUser { return Verdict(.none(.notSignedIn)) }
            return isUnusable ? Verdict(.rejected, isServerInDoubt: true, mayWait: true) : Verdict(.none(.offline))
        }
        switch answer {
        case .lost: return refusalByStatus ?? Verdict(.unknown(.lost))
        case .foreign: return refusalByStatus ?? Verdict(.unknown(isBusy ? .busy : .fault), isServerInDoubt: true)
        case .status: return ofStatus
        case .unreadable:
            return refusalByStatus ?? Verdict(.unknown(isBusy ? .busy : .fault), isServerInDoubt: isForeign)
        case .response(let response): return verdict(of: response)
        }
    }

    // MARK: The status

    /// What a status proves by itself.
    private var refusalByStatus: Verdict? {
        guard let status else { return nil }
        if refusals.statuses.contains(status) { return Verdict(.none(.throttled)) }
        return switch status {
        case 401: Verdict(.none(.notSignedIn))
        // RFC 8470, 5.2, and RFC 6585, 4: it was not processed.
        case 425, 429: Verdict(.none(.throttled))
        // RFC 9110, 15.5.8, and RFC 6585, 6: sent by what lies between, which let nothing through.
        case 407, 511: Verdict(.none(.offline))
        default: nil
        }
    }

    private var ofStatus: Verdict {
        if let refusalByStatus { return refusalByStatus }
        let status = status ?? 0
        return switch status {
        case 409, 412: Verdict(.conflict)
        case 503: Verdict(.unknown(.busy), isServerInDoubt: true)
        case 408, 500...: Verdict(.unknown(.fault), isServerInDoubt: true)
        case _ where Self.notCarriedOut.contains(status): Verdict(.rejected, isServerInDoubt: true, mayWait: true)
        case 400..<500: Verdict(.rejected, isServerInDoubt: true)
        default: Verdict(.unknown(.fault), isServerInDoubt: true)
        }
    }

    /// Statuses that say that the method was not carried out on the resource: it is elsewhere, is not there, does not
    /// know the method, or is refused (RFC 9110, 15.4.2, 15.4.8, 15.4.9 and 15.5; RFC 6585; RFC 7725). 302 and 303 do
    /// not say so: programs redirect by them after they have acted.
    private static let notCarriedOut: Set<Int> = [
        301, 307, 308, 400, 402, 403, 404, 405, 410, 411, 413, 414, 415, 417, 421, 426, 428, 431, 451,
    ]

    private var isBusy: Bool { status == 503 }
    private var isSuccess: Bool { status.map { (200..<300).contains($0) } ?? true }
    private var isServerFault: Bool { status.map { $0 == 408 || $0 >= 500 } ?? false }

    // MARK: A GraphQL response

    private func verdict(of response: Response) -> Verdict {
        if response.data == .answered { return Verdict(.took) }
        guard !response.errors.isEmpty else {
            if response.data == .unanswered { return Verdict(isSuccess ? .took : .unknown(isBusy ? .busy : .fault)) }
            return isSuccess ? Verdict(.unknown(.fault)) : ofStatus
        }
        if response.errors.contains(where: { $0.kind == .late }) { return Verdict(.took) }
        let kinds = Set(response.errors.compactMap(\.kind))
        let isRequestError = response.data == .none && response.errors.allSatisfy { $0.path == nil }
        var verdict = isRequestError ? ofRequestError(kinds, response) : ofFieldErrors(kinds, response)
        verdict.isSignedOut = verdict.isSignedOut || kinds.contains(.notSignedIn) || status == 401
        verdict.isThrottled = verdict.isThrottled || kinds.contains(.throttled) || status == 429
        return verdict
    }

    private func ofRequestError(_ kinds: Set<ServerErrorKind>, _ response: Response) -> Verdict {
        if let refusalByStatus { return kinds.contains(.notSignedIn) ? Verdict(.none(.notSignedIn)) : refusalByStatus }
        if isServerFault { return Verdict(.unknown(isBusy ? .busy : .fault)) }
        // A server that fails after it acted may have no more to say than that.
        if kinds.contains(.fault) { return Verdict(.unknown(.fault)) }
        if kinds.contains(.notSignedIn) { return Verdict(.none(.notSignedIn)) }
        if kinds.contains(.throttled) || isRefused(response) { return Verdict(.none(.throttled)) }
        return Verdict(kinds.contains(.conflict) || status == 409 || status == 412 ? .conflict : .rejected)
    }

    /// Execution had begun: a field may have had its effect before it, or what was asked of it, failed.
    private func ofFieldErrors(_ kinds: Set<ServerErrorKind>, _ response: Response) -> Verdict {
        // Whether it is said of each field of the mutation itself, and not of one beside others or of a part, how it
        // ended.
        let paths = response.errors.map { $0.path?.components }
        let isAboutAll =
            paths.allSatisfy { $0?.count == 1 }
            && Set(paths.compactMap { $0?.first?.name }).isSuperset(of: response.fields)
        if isAboutAll, isRefused(response) {
            return Verdict(.none(kinds.contains(.notSignedIn) ? .notSignedIn : .throttled))
        }
        if !kinds.isDisjoint(with: [.fault, .throttled, .notSignedIn]) || isServerFault {
            return Verdict(.unknown(isBusy ? .busy : .fault))
        }
        guard isAboutAll, response.errors.allSatisfy({ $0.kind != nil }) else { return Verdict(.unknown(.final)) }
        return Verdict(kinds.contains(.conflict) ? .conflict : .rejected)
    }

    private func isRefused(_ response: Response) -> Bool {
        response.errors.allSatisfy { error in error.name.map(refusals.errorKinds.contains) ?? false }
    }
}

/// What follows from an exchange for its mutation, and for the mutations that wait behind it.
struct Verdict: Sendable, Hashable {
    enum Effect: Sendable, Hashable {
        /// It took effect, be it in part.
        case took
        /// It had none, and may have one later.
        case none(Wait)
        /// Something else has changed meanwhile.
        case conflict
        /// The server will never take it as it is.
        case rejected
        /// The exchange does not tell.
        case unknown(Doubt)
    }

    /// What a mutation that had no effect waits for.
    enum Wait: Sendable, Hashable, CaseIterable { case offline, throttled, notSignedIn }

    /// What a repeat of which the server can tell would be good for.
    enum Doubt: Sendable, Hashable, CaseIterable {
        /// The answer: it was lost.
        case lost
        /// The answer, once the server has time.
        case busy
        /// Perhaps the answer; so often at most.
        case fault
        /// Nothing: the server has answered, and would answer the same.
        case final
    }

    var effect: Effect
    /// Whether the server does not know the user.
    var isSignedOut: Bool
    /// Whether the server asks to be left alone.
    var isThrottled: Bool
    /// Whether what answered may not be the GraphQL server, or the endpoint may be none. Until that is known, no other
    /// mutation is to go there.
    var isServerInDoubt: Bool
    /// Whether the mutation had no effect, and was refused for the endpoint's sake where that is not the server's.
    var mayWait: Bool

    init(_ effect: Effect, isServerInDoubt: Bool = false, mayWait: Bool = false) {
        self.effect = effect
        self.isServerInDoubt = isServerInDoubt
        self.mayWait = mayWait
        isSignedOut = effect == .none(.notSignedIn)
        isThrottled = effect == .none(.throttled) || effect == .unknown(.busy)
    }
}

/// What the names mean that servers give to errors, in `extensions.code` or AppSync's `errorType`.
enum ServerErrorKind: Sendable, Hashable, CaseIterable {
    case notSignedIn, throttled, fault, conflict, other
    /// The mutation took effect, and the server failed after that.
    case late

    init(_ name: String) {
        switch name.split(separator: ":").last.map(String.init) ?? name {
        case "UNAUTHENTICATED", "Unauthenticated", "UnauthorizedException", "TokenExpiredException",
            "ExpiredTokenException", "UnrecognizedClientException":
            self = .notSignedIn
        case "THROTTLED", "RATE_LIMITED", "TOO_MANY_REQUESTS", "ThrottlingException", "LimitExceededException":
            self = .throttled
        case "INTERNAL_SERVER_ERROR", "InternalFailure", "InternalFailureException", "SERVICE_UNAVAILABLE",
            "ServiceUnavailableException":
            self = .fault
        case "CONFLICT", "ConflictUnhandled", "ConditionalCheckFailedException": self = .conflict
        // The change is made, and missing from the delta table.
        case "DeltaSyncWriteError": self = .late
        default: self = .other
        }
    }
}

extension ResponsePath.Component {
    fileprivate var name: String? {
        if case .field(let name) = self { name } else { nil }
    }
}
