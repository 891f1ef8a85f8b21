import Foundation
import LarderGraphQL
import LarderOperations
import LarderRecords
import Logging

/// Takes single mutations through their steps. What is on disk after each, and what a crash there leads to:
///
/// | step | on disk | after a crash |
/// | --- | --- | --- |
/// | begin | in flight, with its owner | sent again with the same key, asked about, or set aside: `recover` |
/// | answer | acknowledged, with the answer; temporary ids replaced everywhere | stored by `recover` |
/// | store | the records, with the key among the applied | settled by `recover`, and not stored again |
/// | settle | the outcome alone | nothing left to do |
///
/// Where the server recognizes repeats, the runner notes an answer and begins the next mutation of the lane in one
/// commit. Meanwhile one task for all lanes stores the answers in their order: answers that wait together are stored in
/// one commit of the cache and one of the queue. Where the server does not recognize them, each answer is stored before
/// the next mutation of its lane is begun.
struct AttemptRunner: Sendable {
    let runner: MutationRunner
    let queue: MutationQueue
    let transport: any GraphQLTransport
    let owner: String
    /// Noted, and yet to be stored.
    let answers = AnswerBatch()

    private var core: PartitionCore { runner.core }
    private var options: MutationRunner.Options { runner.options }
    private var questions: ProgramQuestions { ProgramQuestions(options) }
    /// How the server is told the key.
    private var telling: KeyTelling { KeyTelling(transport.idempotency) }

    // MARK: What another runner left

    /// Ends the attempts that were under way when the runner before this one died.
    func recover() async throws(LarderError) {
        do {
            let unapplied = MutationFilter(partition: core.name, states: [.acknowledged])
            try await store(try queue.list(unapplied, isStrict: true).map { NotedAnswer(mutation: $0) })
            for mutation in try queue.recover(in: core.name, isAlive: { $0 == owner }) {
                guard let before = mutation.owner else { continue }
                try await queue.adopt(mutation.attempt, from: before, to: owner, now: core.now())
                let failure = MutationFailure(
                    .outcomeUnknown, message: "The process that sent it ended before the answer", time: core.now())
                _ = try await end(mutation, AttemptEnd(.unknown(.lost), failure), isFound: true)
            }
            try await core.prune(queue)
        } catch { throw LarderError(translating: error) }
    }

    // MARK: One lane

    /// After so many mutations a lane is left where the runner `wantsLanes`, and has to be looked for again.
    private static let longestTurn = 100

    /// Sends the head of a lane, and the mutations after it for as long as each is answered.
    func carryOut(_ head: Runnable.Head) async throws(LarderError) {
        do {
            let requests = NextRequest(runner.executor) { (mutation) throws(LarderError) in try request(for: mutation) }
            var next = try await begin(head.id)
            var count = 0
            // A mutation that has begun is sent, also where the runner is to stop: it would be found in flight.
            while let mutation = next {
                options.reached(.begun)
                let turn = runner.turn
                let end = await send(mutation, requests)
                options.reached(.received)
                count += 1
                runner.note(end, sentIn: turn)
                let goesOn = count < Self.longestTurn || !runner.wantsLanes
                next = try await self.end(mutation, end, sentIn: turn, goingOn: goesOn ? requests : nil)
            }
        } catch { throw LarderError(translating: error) }
    }

    /// Nil where another caller has edited, discarded or set aside the mutation meanwhile.
    private func begin(_ id: UUID) async throws(OperationsError) -> Mutation? {
        do {
            return try await queue.begin(id, owner: owner, telling: telling, now: core.now())
        } catch {
            guard [.wrongState, .notFound, .notItsTurn, .expired].contains(error.code) else { throw error }
            return nil
        }
    }

    private func send(_ mutation: Mutation, _ requests: NextRequest) async -> AttemptEnd {
        guard mutation.telling != nil else {
            return AttemptEnd(
                .unknown(.final),
                MutationFailure(
                    .outcomeUnknown,
                    message: "An earlier attempt may have taken effect, and the server would not know this "
                        + "one for its repeat. Look whether the server has it.", time: core.now()), isUnsent: true)
        }
        let request: MutationRequest
        do throws(LarderError) { request = try await requests.of(mutation) } catch {
            // The stored mutation does not fit the schema of today.
            return AttemptEnd(
                .rejected,
                MutationFailure(
                    .rejected, code: error.code.rawValue, message: error.message, time: core.now()))
        }
        guard !runner.isCancelled else {
            return AttemptEnd(
                .none(.offline),
                MutationFailure(
                    .offline, message: "The runner was stopped before it was sent", time: core.now()), isUnsent: true)
        }
        do throws(TransportError) {
            let answer = try await transport.send(request.sent, deadline: .now + options.timeout)
            return AttemptEnd(answer, to: request, transport.refusals, at: core.now())
        } catch { return AttemptEnd(error, transport.refusals, at: core.now()) }
    }

    private func request(for mutation: Mutation) throws(LarderError) -> MutationRequest {
        let operation = try PartitionCore.operation(of: mutation)
        var variables = operation.variables
        var headers = options.headers
        var isAsQueued = true
        switch transport.idempotency {
        case .header(let name): headers.append(.init(name: name, value: mutation.idempotencyKey))
        case .variable(let name):
            variables[name] = .string(mutation.idempotencyKey)
            isAsQueued = false
        case nil: break
        }
        let compiled = try core.operations.compiled(operation)
        let bound = try core.operations.boundOnce(compiled, variables)
        return MutationRequest(
            sent: core.request(compiled, bound, headers: headers), operation: bound, isAsQueued: isAsQueued)
    }

    /// Makes the transition that an attempt's end asks for.
    ///
    /// - Parameters:
    ///   - isFound: Whether the attempt was another runner's. Then it may be sent again at once.
    ///   - turn: What was known of the server when it was begun; nil for another runner's.
    ///   - requests: The requests of the lane, where its next mutation may be begun.
    /// - Returns: The next of the lane, if it was begun.
    private func end(
        _ mutation: Mutation, _ end: AttemptEnd, isFound: Bool = false, sentIn turn: MutationRunner.Turn? = nil,
        goingOn requests: NextRequest? = nil
    ) async throws -> Mutation? {
        if let answer = end.answer {
            return try await note(answer.body, (answer.parsed, answer.request), of: mutation, requests)
        }
        guard var failure = end.failure else { return nil }
        let now = core.now()
        let pauseEnd = now.addingTimeInterval(
            options.backoff.pause(after: mutation.attempts, asked: end.retryAfter, fraction: options.random()).seconds)
        // An attempt that has not been sent, or was another runner's, may be sent at once.
        let again = isFound || end.isUnsent ? nil : pauseEnd
        switch end.verdict.effect {
        case .rejected where end.verdict.mayWait:
            // It is the mutation that is refused where the server is there. That it has come after the refusal is ruled
            // out by another attempt.
            if await runner.findsServer(transport) {
                if runner.isRefusedAgain(mutation.id) {
                    runner.forgetFaults(of: mutation.id)
                    try await setAside(mutation, failure)
                    return nil
                }
            }
            failure.class = .unusableServer
            try await queue.retryLater(mutation.attempt, at: pauseEnd, failure, leaving: .asBefore, now: now)
        case .took: break
        case .none(.notSignedIn):
            try await queue.retryLater(mutation.attempt, at: nil, failure, leaving: .asBefore, now: now)
        case .none: try await queue.retryLater(mutation.attempt, at: again, failure, leaving: .asBefore, now: now)
        case .rejected: try await setAside(mutation, failure)
        case .conflict: try await resolve(mutation, failure, again, orAsking: pauseEnd)
        case .unknown(let doubt):
            guard doubt != .final, (mutation.telling ?? mutation.doubt ?? .none).allowsRepeat(telling) else {
                return try await ask(mutation, failure, doubt, again, orAsking: pauseEnd, requests)
            }
            // That the server does not know the user, has no time, or is none, says nothing of this mutation.
            let isItsFault = doubt == .fault && !end.verdict.isSignedOut && !end.verdict.isThrottled
            var isThere = true
            if isItsFault, end.verdict.isServerInDoubt {
                isThere = await runner.findsServer(transport)
                if let turn { isThere = isThere && runner.hasServerStayed(since: turn) }
            }
            if isItsFault, isThere, runner.countFault(of: mutation.id) >= options.maximumFaults {
                runner.forgetFaults(of: mutation.id)
                try await setAside(mutation, failure)
                return nil
            }
            try await queue.retryLater(
                mutation.attempt, at: end.verdict.isSignedOut ? nil : again, failure, leaving: .attempt, now: now)
        }
        return nil
    }

    private func setAside(_ mutation: Mutation, _ failure: MutationFailure) async throws(OperationsError) {
        try await queue.setAside(mutation.id, expecting: .inFlight, failure, now: core.now())
        core.layers.remove([mutation.id])
    }

    // MARK: Answers

    /// Notes an answer, and hands it on to be stored.
    ///
    /// - Returns: The next of the lane, begun in the same commit unless the runner is not to go on.
    private func note(
        _ body: [UInt8], _ reading: (parsed: ParsedResponse, request: MutationRequest)?, of mutation: Mutation,
        _ requests: NextRequest?
    ) async throws -> Mutation? {
        let real = TemporaryIDReading(mutation).realIDs(in: body)
        var next: Mutation?
        // Where the server does not recognize repeats, nothing is in flight for longer than it must be.
        if let requests, transport.idempotency != nil, runner.goesOn {
            next = try await queue.answer(
                mutation.attempt, body, temporaryIDs: real, beginningNextAs: owner, telling: telling,
                now: core.now(), expecting: requests.expect)
        } else {
            try await queue.answer(mutation.attempt, body, temporaryIDs: real, now: core.now())
        }
        options.reached(.acknowledged)
        runner.forgetFaults(of: mutation.id)
        var noted = NotedAnswer(mutation: mutation, parsed: reading?.parsed, isFollowed: next != nil)
        noted.mutation.answer = body
        // Real ids have taken the places of its own temporary ones.
        if !real.isEmpty, case .present(let stored) = try queue.find(mutation.id) {
            noted.mutation.content = stored.content
        } else if let request = reading?.request, request.isAsQueued {
            noted.bound = request.operation
        }
        guard transport.idempotency != nil else {
            // The next mutation is not under way while this may fail: what became of it could not be found out.
            try await store([noted])
            core.operationsStore.changeSignal.notify()
            return nil
        }
        await answers.add(noted)
        return next
    }

    /// Stores answers as they come, until there will be none.
    func storeAnswers() async throws(LarderError) {
        while let waiting = await answers.next() {
            do { try await store(waiting) } catch { throw LarderError(translating: error) }
            core.operationsStore.changeSignal.notify()
        }
    }

    /// Stores answers in their order, each once, and settles their mutations.
    private func store(_ answers: [NotedAnswer]) async throws {
        guard !answers.isEmpty else { return }
        var storable: [(mutation: Mutation, answer: MutationAnswer, result: [UInt8]?, errors: [UInt8]?)] = []
        var unstorable: [Mutation] = []
        for answer in answers {
            do throws(LarderError) {
                guard let prepared = try core.prepared(answer) else {
                    unstorable.append(answer.mutation)
                    continue
                }
                storable.append((answer.mutation, prepared.answer, prepared.result, prepared.errors))
            } catch {
                try noteMisfit(error, of: answer.mutation)
                unstorable.append(answer.mutation)
            }
        }
        let outcomes = try await core.cache.write(storable.map(\.answer))
        var results: [UUID: [UInt8]] = [:]
        // The errors of a mutation that took effect are known as long as its outcome, also where the answer is not
        // stored.
        let errors = Dictionary(
            storable.compactMap { stored in stored.errors.map { (stored.mutation.id, $0) } }, uniquingKeysWith: { $1 })
        for (stored, outcome) in zip(storable, outcomes) {
            do {
                _ = try outcome.get()
                results[stored.mutation.id] = stored.result
            } catch {
                try noteMisfit(LarderError.parking(error), of: stored.mutation)
                unstorable.append(stored.mutation)
            }
        }
        // Their layers go out of sight all the same, in every process.
        for mutation in unstorable { try await core.noteUnstored(mutation.idempotencyKey) }
        for _ in answers { options.reached(.stored) }
        try await queue.settle(
            answers.map { ($0.mutation.id, results[$0.mutation.id]) }, errors: errors, now: core.now())
        for _ in answers { options.reached(.settled) }
        // Others' temporary ids may have become real ones.
        if answers.allSatisfy({ $0.mutation.temporaryIDs.isEmpty }) {
            core.layers.settled(answers.map(\.mutation.id))
        } else {
            try core.layers.reload(queue)
        }
    }

    /// An answered mutation took effect; where the answer does not fit the schema of today, it is fetched when it is
    /// asked for.
    ///
    /// - Throws: The error, where it is another one.
    private func noteMisfit(_ error: LarderError, of mutation: Mutation) throws(LarderError) {
        guard Self.misfits.contains(error.code.rawValue) else { throw error }
        core.logger.warning(
            "an answer no longer fits, and is not stored",
            metadata: [
                "mutation": "\(mutation.id)", "error": "\(error)",
            ])
    }

    /// What is thrown where an answer does not fit its operation any more, or the operation the schema, or the answer
    /// the cache: at every further try too.
    private static let misfits = Set(
        RecordError.Code.ofContent.map(\.rawValue)
            + [LarderError.Code.operation, .variables, .syntax, .data].map(\.rawValue))

    // MARK: Questions

    /// What the program says to a conflict, done.
    ///
    /// - Parameters:
    ///   - again: When it may be sent again with what the resolver says.
    ///   - later: When it is sent again as it is where the resolver did not answer.
    private func resolve(
        _ mutation: Mutation, _ failure: MutationFailure, _ again: Date?, orAsking later: Date
    ) async throws {
        var failure = failure
        switch await questions.resolution(of: mutation, failure) {
        case .silence(let why):
            failure.message += why
            // It had no effect, and the server's next refusal asks the resolver again.
            try await sendAgain(mutation, failure, at: later, leaving: .asBefore)
        case .unusable(let why):
            failure.message += why
            try await setAside(mutation, failure)
        case .answer(.setAside): try await setAside(mutation, failure)
        case .answer(.keepServers):
            try await setAside(mutation, failure)
            _ = try await queue.discard(mutation.id, dependents: .release, now: core.now())
            try core.layers.reload(queue)
        case .answer(.retry(let variables)):
            let revision = Revision(variables: variables, idempotencyKey: UUID().uuidString.lowercased())
            do throws(OperationsError) {
                // Refused under the old key, it had no effect under it.
                try await sendAgain(mutation, failure, at: again, revision, leaving: .none)
            } catch {
                guard [.invalid, .unknownTemporaryID, .duplicate].contains(error.code) else { throw error }
                failure.message += "; what its resolver says cannot be queued: \(error.message)"
                try await setAside(mutation, failure)
            }
            try core.layers.reload(queue)
        }
    }

    /// What the program's check says of a mutation whose answer was lost, done.
    ///
    /// - Parameters:
    ///   - again: When it may be sent again where it had no effect.
    ///   - later: When the check is asked again where it did not answer.
    /// - Returns: The next of the lane, if it was begun.
    private func ask(
        _ mutation: Mutation, _ failure: MutationFailure, _ doubt: Verdict.Doubt, _ again: Date?, orAsking later: Date,
        _ requests: NextRequest?
    ) async throws -> Mutation? {
        var failure = failure
        failure.class = .outcomeUnknown
        switch await questions.outcome(of: mutation, failure) {
        case .silence(let why):
            failure.message += why
            try await sendAgain(
                mutation, failure, at: later, leaving: doubt == .final ? .unrepeatable : .attempt)
        case .unusable(let why):
            failure.message += why
            try await setAside(mutation, failure)
        case .answer(.unknown): try await setAside(mutation, failure)
        case .answer(.hadNoEffect):
            try await queue.retryLater(
                mutation.attempt, at: again, failure, leaving: RemainingDoubt.none, now: core.now())
        case .answer(.tookEffect(let body)): return try await note(body, nil, of: mutation, requests)
        }
        return nil
    }

    /// Makes the mutation pending again, so often in one run; then it is set aside.
    private func sendAgain(
        _ mutation: Mutation, _ failure: MutationFailure, at time: Date?, _ revision: Revision? = nil,
        leaving doubt: RemainingDoubt
    ) async throws(OperationsError) {
        guard runner.countFault(of: mutation.id) < options.maximumFaults else {
            runner.forgetFaults(of: mutation.id)
            return try await setAside(mutation, failure)
        }
        try await queue.retryLater(
            mutation.attempt, at: time, failure, revision: revision, leaving: doubt, now: core.now())
    }
}

extension KeyTelling {
    init(_ idempotency: Idempotency?) {
        self =
            switch idempotency {
            case .header(let name): .header(name)
            case .variable(let name): .variable(name)
            case nil: .none
            }
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}

extension LarderError {
    init(translating error: any Error) {
        switch error {
        case let error as LarderError: self = error
        case let error as OperationsError: self.init(error)
        case let error as RecordError: self = .parking(error)
        default: self.init(.notRunnable, "\(error)", cause: error)
        }
    }
}
