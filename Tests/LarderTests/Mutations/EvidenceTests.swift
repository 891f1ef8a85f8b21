import LarderTestSupport
import Testing

@testable import Larder

private typealias Failure = Evidence.Response.Failure

private let names: [String?] = [
    nil, "UNAUTHENTICATED", "THROTTLED", "INTERNAL_SERVER_ERROR", "ConflictUnhandled", "BAD", "BUSY",
]
private let paths: [ResponsePath?] = [
    nil, ResponsePath([.field("add")]), ResponsePath([.field("rate")]), ResponsePath([.field("other")]),
    ResponsePath([.field("add"), .field("author"), .field("name")]), ResponsePath([.field("add"), .index(0)]),
]
private let statuses: [Int?] = [
    nil, 200, 204, 301, 400, 401, 403, 404, 407, 408, 409, 412, 422, 425, 429, 500, 502, 503, 504, 511,
]

private func failure(_ name: String?, _ path: ResponsePath? = nil) -> Failure {
    Failure(kind: name.map(ServerErrorKind.init), name: name, path: path)
}

private func response(
    _ data: Evidence.Response.Data, _ errors: [Failure] = [], fields: Set<String> = ["add"]
) -> Evidence.Answer {
    .response(Evidence.Response(data: data, errors: errors, fields: fields))
}

/// What is proven, said once more and in other words than the sources say it.
private struct Proof {
    var evidence: Evidence

    var response: Evidence.Response? { if case .response(let response) = evidence.answer { response } else { nil } }

    /// Whether something shows that the server began to carry the mutation out.
    var hadBegun: Bool {
        guard let response else { return false }
        return response.data != .none || response.errors.contains { $0.path != nil }
    }

    var isPlainRefusal: Bool {
        guard let status = evidence.status else { return false }
        return [401, 407, 425, 429, 511].contains(status) || evidence.refusals.statuses.contains(status)
    }

    var isRequestError: Bool { response.map { !$0.errors.isEmpty } ?? false && !hadBegun }

    /// Whether every field of the mutation ended with an error that the program has declared to be a refusal.
    var isDeclared: Bool {
        guard let response, response.data != .answered, !response.errors.isEmpty else { return false }
        let ended = response.fields.allSatisfy { field in
            response.errors.contains { $0.path == ResponsePath([.field(field)]) }
        }
        return ended
            && response.errors.allSatisfy { error in
                error.path?.components.count == 1 && error.name.map(evidence.refusals.errorKinds.contains) ?? false
            }
    }

    var isServerFault: Bool { evidence.status.map { $0 == 408 || $0 >= 500 } ?? false }
    var kinds: Set<ServerErrorKind> { Set((response?.errors ?? []).compactMap(\.kind)) }

    var hadNoEffect: Bool {
        evidence.phase == .beforeSending || isPlainRefusal && !hadBegun || isDeclared
            || isRequestError && !isServerFault && !kinds.contains(.fault)
    }
}

@Suite("Evidence of an exchange about its mutation")
struct EvidenceTests {
    private static let refusals = [
        ServerRefusals(), ServerRefusals(statuses: [503]), ServerRefusals(errorKinds: ["BUSY", "UNAUTHENTICATED"]),
    ]

    private static let responses: [Evidence.Answer] = {
        var answers: [Evidence.Answer] = []
        let single = names.flatMap { name in paths.map { [failure(name, $0)] } }
        let pairs = single.flatMap { first in single.map { first + $0 } }
        for data in [.none, .unanswered, .answered] as [Evidence.Response.Data] {
            for fields in [["add"], ["add", "rate"]] as [Set<String>] {
                for errors in [[]] + single + pairs {
                    answers.append(response(data, errors, fields: fields))
                }
            }
        }
        return answers
    }()

    /// Every combination of phase, status, data, errors, paths and declared refusals.
    private func walk(_ body: (Evidence, Verdict) -> String?) {
        var wrong: [String] = []
        for answer in [.lost, .foreign, .status, .unreadable] + Self.responses {
            for status in statuses {
                for refusals in Self.refusals {
                    for phase in TransportError.Phase.allCases {
                        for isForeign in answer == .unreadable ? [false, true] : [false] {
                            let evidence = Evidence(
                                phase: phase, status: status, answer: answer, isForeign: isForeign, refusals: refusals)
                            if let what = body(evidence, evidence.verdict), wrong.count < 10 {
                                wrong.append("\(what): \(evidence) gives \(evidence.verdict)")
                            }
                        }
                    }
                }
            }
        }
        #expect(wrong == [])
    }

    /// What comes from elsewhere than a GraphQL server, or is not all of its answer.
    private static let strangeBodies: [(body: String, isForeign: Bool)] = [
        ("", true), (" ", true), ("<html><body>Sign in</body></html>", true), ("null", true), ("[]", true),
        ("true", true), (#""ok""#, true), ("{}", true), (#"{"login":"please"}"#, true), (#"{"errors":[]}"#, true),
        (#"{"errors":{"stars":["too many"]}}"#, true), (#"{"errors":"no"}"#, true), (#"{"data""#, true),
        ("data: {}\n\n", true),
        ("--graphql\r\nContent-Type: application/json\r\n\r\n{\"data\":{\"rate\":null}}\r\n--graphql--", true),
        (#"{"hasNext":false}"#, true), (#"{"incremental":[{"data":{"title":"Soup"},"path":["rate"]}]}"#, true),
        (#"{"data":[]}"#, false), (#"{"data":{}}"#, false), (#"{"data":{"rate":7}}"#, false),
        (#"{"data":{"other":{"id":"1"}}}"#, false),
        (#"{"data":{"rate":{"__typename":"Recipe","id":"1"}},"pending":[{"id":"0"}],"hasNext":true}"#, false),
    ]

    @Test("An answer that is none, or not all of one, is never taking effect, nor a refusal but by its status")
    func strangeAnswers() async throws {
        try await withStoreFixture(ScriptedServer { _, _ in ScriptedServer.body("") }) { (app) throws in
            let operation = giveStars("1", 5)
            let compiled = try app.core.operations.compiled(operation)
            let bound = try app.core.operations.boundOnce(compiled, operation.variables)
            let request = MutationRequest(
                sent: app.core.request(compiled, bound, headers: []), operation: bound, isAsQueued: true)
            var wrong: [String] = []
            for (body, isForeign) in Self.strangeBodies {
                for status in statuses {
                    for refusals in Self.refusals {
                        let answer = GraphQLAnswer(body: Array(body.utf8), status: status)
                        let end = AttemptEnd(answer, to: request, refusals, at: .now)
                        let proof = Proof(
                            evidence: Evidence(status: status, answer: .unreadable, refusals: refusals))
                        let isRight =
                            switch end.verdict.effect {
                            case .none: proof.isPlainRefusal
                            case .unknown: end.verdict.isServerInDoubt == isForeign
                            case .took, .conflict, .rejected: false
                            }
                        if case .answer = end.outcome { wrong.append("\(body) is an answer") }
                        if !isRight { wrong.append("\(body), \(status ?? 0): \(end.verdict)") }
                    }
                }
            }
            #expect(wrong == [])
        }
    }

    @Test("In every combination what is no GraphQL response puts the server in doubt, and no other answer does")
    func doubtOfTheServer() {
        walk { evidence, verdict in
            let isElsewhere =
                switch evidence.answer {
                case .foreign, .status: true
                case .unreadable: evidence.isForeign
                case .lost: false
                case .response: verdict.isServerInDoubt
                }
            guard evidence.phase == .sending, !Proof(evidence: evidence).isPlainRefusal else { return nil }
            // A conflict that a status alone tells of is the server's.
            if case .conflict = verdict.effect { return nil }
            return verdict.isServerInDoubt == isElsewhere ? nil : "what answers is in doubt: \(isElsewhere)"
        }
    }

    @Test("In every combination a mutation is sent again only where it is proven that it had no effect")
    func neverOnAGuess() {
        walk { evidence, verdict in
            guard case .none = verdict.effect else { return nil }
            return Proof(evidence: evidence).hadNoEffect ? nil : "no proof"
        }
    }

    @Test("In every combination a mutation that had no effect waits where waiting helps, and is not set aside")
    func noDeadLetterWhereWaitingHelps() {
        walk { evidence, verdict in
            let proof = Proof(evidence: evidence)
            guard proof.hadNoEffect else { return nil }
            let helps =
                evidence.phase == .beforeSending || proof.isPlainRefusal || proof.isDeclared
                || !proof.kinds.isDisjoint(with: [.notSignedIn, .throttled])
            if case .none = verdict.effect { return nil }
            return helps ? "waiting would help" : nil
        }
    }

    @Test(
        "In every combination data means that it took effect, and no failure after it began is rejected by its status"
    )
    func tookEffect() {
        walk { evidence, verdict in
            guard evidence.phase == .sending, let response = Proof(evidence: evidence).response else { return nil }
            if response.data == .answered { return verdict.effect == .took ? nil : "it took effect" }
            let isBelow = response.errors.contains { ($0.path?.components.count ?? 0) > 1 }
            guard isBelow else { return nil }
            if case .unknown = verdict.effect { return nil }
            return "a field below had been reached"
        }
    }

    @Test("In every combination the runner learns that no user is signed in, or that the server has no time")
    func heard() {
        walk { evidence, verdict in
            guard evidence.phase == .sending else {
                return verdict.isSignedOut || verdict.isThrottled ? "nothing was said" : nil
            }
            let kinds = Proof(evidence: evidence).kinds
            if verdict.effect != .took, kinds.contains(.notSignedIn), !verdict.isSignedOut { return "signed out" }
            if verdict.effect != .took, kinds.contains(.throttled), !verdict.isThrottled { return "throttled" }
            return nil
        }
    }

    @Test("A server that answers by 429 is left alone, and one that answers by 401 knows no user, whatever has failed")
    func saidByStatus() {
        let errors = [failure("BAD", paths[1])]
        for data in [.none, .unanswered] as [Evidence.Response.Data] {
            #expect(Evidence(status: 429, answer: response(data, errors)).verdict.isThrottled)
            #expect(Evidence(status: 401, answer: response(data, errors)).verdict.isSignedOut)
        }
    }

    @Test("An error that says that no user is signed in holds up no mutation where another field has a value")
    func answeredBesideIt() {
        let errors = [failure("UNAUTHENTICATED", paths[2])]
        let verdict = Evidence(status: 200, answer: response(.answered, errors, fields: ["add", "rate"])).verdict
        #expect(verdict.effect == .took && !verdict.isSignedOut)
    }

    @Test(
        "A row of the table",
        arguments: [
            // (phase is sending)
            (Evidence(answer: .lost), .unknown(.lost)),
            (Evidence(status: 200, answer: .lost), .unknown(.lost)),
            (Evidence(status: 429, answer: .lost), .none(.throttled)),
            (Evidence(status: 401, answer: .status), .none(.notSignedIn)),
            (Evidence(status: 425, answer: .status), .none(.throttled)),
            (Evidence(status: 511, answer: .status), .none(.offline)),
            (Evidence(status: 503, answer: .status), .unknown(.busy)),
            (Evidence(status: 503, answer: .status, refusals: .init(statuses: [503])), .none(.throttled)),
            (Evidence(status: 500, answer: .status), .unknown(.fault)),
            (Evidence(status: 408, answer: .status), .unknown(.fault)),
            (Evidence(status: 409, answer: .status), .conflict),
            (Evidence(status: 412, answer: .status), .conflict),
            (Evidence(status: 422, answer: .status), .rejected),
            (Evidence(status: 302, answer: .status), .unknown(.fault)),
            (Evidence(status: 200, answer: .foreign), .unknown(.fault)),
            (Evidence(status: 503, answer: .foreign), .unknown(.busy)),
            (Evidence(status: 511, answer: .foreign), .none(.offline)),
            (Evidence(status: 200, answer: .unreadable), .unknown(.fault)),
            (Evidence(status: 401, answer: .unreadable), .none(.notSignedIn)),
            (Evidence(status: 503, answer: .unreadable), .unknown(.busy)),
            // Request errors.
            (Evidence(status: 200, answer: response(.none, [failure("BAD")])), .rejected),
            (Evidence(status: 200, answer: response(.none, [failure(nil)])), .rejected),
            (
                Evidence(status: 200, answer: response(.none, [failure("BAD"), failure("THROTTLED")])),
                .none(.throttled)
            ),
            (Evidence(status: 200, answer: response(.none, [failure("UNAUTHENTICATED")])), .none(.notSignedIn)),
            (
                Evidence(status: 200, answer: response(.none, [failure("THROTTLED"), failure("UNAUTHENTICATED")])),
                .none(.notSignedIn)
            ),
            (Evidence(status: 200, answer: response(.none, [failure("INTERNAL_SERVER_ERROR")])), .unknown(.fault)),
            (Evidence(status: 401, answer: response(.none, [failure(nil)])), .none(.notSignedIn)),
            (Evidence(status: 429, answer: response(.none, [failure(nil)])), .none(.throttled)),
            (Evidence(status: 503, answer: response(.none, [failure(nil)])), .unknown(.busy)),
            (Evidence(status: 500, answer: response(.none, [failure(nil)])), .unknown(.fault)),
            (Evidence(status: 409, answer: response(.none, [failure(nil)])), .conflict),
            (Evidence(status: 412, answer: response(.none, [failure(nil)])), .conflict),
            (Evidence(status: 400, answer: response(.none, [failure(nil)])), .rejected),
            (
                Evidence(
                    status: 200, answer: response(.none, [failure("BUSY")]), refusals: .init(errorKinds: ["BUSY"])),
                .none(.throttled)
            ),
            // Errors of fields.
            (Evidence(status: 200, answer: response(.none, [failure("BAD", paths[1])])), .rejected),
            (Evidence(status: 200, answer: response(.unanswered, [failure("BAD", paths[1])])), .rejected),
            (Evidence(status: 200, answer: response(.unanswered, [failure("ConflictUnhandled", paths[1])])), .conflict),
            (Evidence(status: 200, answer: response(.none, [failure(nil, paths[1])])), .unknown(.final)),
            (Evidence(status: 200, answer: response(.none, [failure("BAD", paths[4])])), .unknown(.final)),
            (Evidence(status: 200, answer: response(.none, [failure("THROTTLED", paths[4])])), .unknown(.fault)),
            (Evidence(status: 200, answer: response(.none, [failure("THROTTLED", paths[1])])), .unknown(.fault)),
            (Evidence(status: 401, answer: response(.none, [failure("UNAUTHENTICATED", paths[1])])), .unknown(.fault)),
            (
                Evidence(status: 200, answer: response(.none, [failure("INTERNAL_SERVER_ERROR", paths[1])])),
                .unknown(.fault)
            ),
            (Evidence(status: 500, answer: response(.none, [failure("BAD", paths[1])])), .unknown(.fault)),
            (Evidence(status: 408, answer: response(.none, [failure("BAD", paths[1])])), .unknown(.fault)),
            (Evidence(status: 503, answer: response(.none, [failure("BAD", paths[1])])), .unknown(.busy)),
            (
                Evidence(status: 200, answer: response(.none, [failure("BAD", paths[1])], fields: ["add", "rate"])),
                .unknown(.final)
            ),
            (
                Evidence(
                    status: 200,
                    answer: response(
                        .unanswered, [failure("BAD", paths[1]), failure("BAD", paths[2])], fields: ["add", "rate"])),
                .rejected
            ),
            (
                Evidence(
                    status: 200,
                    answer: response(
                        .unanswered, [failure("BAD", paths[1]), failure(nil, paths[2])], fields: ["add", "rate"])),
                .unknown(.final)
            ),
            (
                Evidence(
                    status: 200, answer: response(.unanswered, [failure("UNAUTHENTICATED", paths[1])]),
                    refusals: .init(errorKinds: ["UNAUTHENTICATED"])),
                .none(.notSignedIn)
            ),
            (Evidence(status: 200, answer: response(.answered, [failure("THROTTLED", paths[2])])), .took),
            (Evidence(status: 200, answer: response(.unanswered)), .took),
            (Evidence(status: 500, answer: response(.unanswered)), .unknown(.fault)),
            (Evidence(status: 503, answer: response(.unanswered)), .unknown(.busy)),
            (Evidence(status: 200, answer: response(.none)), .unknown(.fault)),
            (Evidence(status: 503, answer: response(.none)), .unknown(.busy)),
        ] as [(Evidence, Verdict.Effect)])
    func row(evidence: Evidence, effect: Verdict.Effect) { #expect(evidence.verdict.effect == effect) }

    @Test("A status that says that nothing was carried out lets a mutation wait; another of its kind does not")
    func waits() {
        let waiting = (300..<500).filter { status in
            let verdict = Evidence(status: status, answer: .status).verdict
            return verdict.effect == .rejected && verdict.mayWait
        }
        #expect(
            waiting == [
                301, 307, 308, 400, 402, 403, 404, 405, 410, 411, 413, 414, 415, 417, 421, 426, 428, 431, 451,
            ])
    }

    @Test("Of a name of AppSync's that has colons the part after the last one counts")
    func prefixedNames() {
        #expect(ServerErrorKind("DynamoDB:ConditionalCheckFailedException") == .conflict)
        #expect(ServerErrorKind("a:b:ThrottlingException") == .throttled)
        #expect(ServerErrorKind("Lambda:Unhandled") == .other)
    }

    @Test(
        "Each of the names that servers give to errors of a kind is known as that kind",
        arguments: [
            (
                .notSignedIn,
                [
                    "UNAUTHENTICATED", "Unauthenticated", "UnauthorizedException", "TokenExpiredException",
                    "ExpiredTokenException", "UnrecognizedClientException",
                ]
            ),
            (
                .throttled,
                [
                    "THROTTLED", "RATE_LIMITED", "TOO_MANY_REQUESTS", "ThrottlingException",
                    "LimitExceededException",
                ]
            ),
            (
                .fault,
                [
                    "INTERNAL_SERVER_ERROR", "InternalFailure", "InternalFailureException", "SERVICE_UNAVAILABLE",
                    "ServiceUnavailableException",
                ]
            ),
            (.conflict, ["CONFLICT", "ConflictUnhandled", "ConditionalCheckFailedException"]),
        ] as [(ServerErrorKind, [String])])
    func kindNames(kind: ServerErrorKind, names: [String]) {
        for name in names { #expect(ServerErrorKind(name) == kind, "\(name)") }
    }
}
