internal import Foundation
internal import LarderGraphQL
internal import LarderOperations
internal import LarderRecords
internal import Logging

/// Takes single mutations through their steps. What is on disk after each, and what a crash there leads to:
///
/// | step | on disk | after a crash |
/// | --- | --- | --- |
/// | begin | in flight, with its owner | sent again with the same key, asked about, or set aside: `recover` |
/// | answer | acknowledged, with the answer; temporary ids replaced everywhere | applied by `recover` |
/// | apply | the records, with the key among the applied | settled by `recover`, and not stored again |
/// | settle | the outcome alone | nothing left to do |
struct AttemptRunner: Sendable {
    let runner: MutationRunner
    let queue: MutationQueue
    let transport: any GraphQLTransport
    let owner: String

    private var core: PartitionCore { runner.core }
    private var options: MutationRunner.Options { runner.options }

    // MARK: What another runner left

    /// Ends what was under way when the runner before this one died.
    func recover() async throws(LarderError) {
        do {
            let unapplied = MutationFilter(partition: core.name, states: [.acknowledged])
            for mutation in try queue.list(unapplied) { try await apply(mutation) }
            for mutation in try queue.recover(in: core.name, isAlive: { $0 == owner }) {
                guard let before = mutation.owner else { continue }
                try await queue.adopt(mutation.attempt, from: before, to: owner, now: core.now())
                let failure = MutationFailure(
                    .outcomeUnknown, message: "the process that sent it ended before the answer", time: core.now())
                try await end(mutation, .unknown(failure, retryAfter: nil), pausing: false)
            }
            try await core.pruneApplied(queue)
        } catch { throw LarderError(translating: error) }
    }

    // MARK: One mutation

    /// Sends the head of a lane, and ends the attempt.
    func carryOut(_ head: Runnable.Head) async throws(LarderError) {
        do {
            guard let mutation = try await begin(head.id) else { return }
            options.afterStep(.begun)
            let end = await send(mutation)
            options.afterStep(.received)
            try await self.end(mutation, end, pausing: true)
        } catch { throw LarderError(translating: error) }
    }

    /// Nil where somebody has edited, discarded or set aside the mutation meanwhile.
    private func begin(_ id: UUID) async throws(OperationsError) -> Mutation? {
        do {
            return try await queue.begin(id, owner: owner, now: core.now())
        } catch {
            guard [.wrongState, .notFound, .notItsTurn, .expired].contains(error.code) else { throw error }
            return nil
        }
    }

    private func send(_ mutation: Mutation) async -> AttemptEnd {
        let request: GraphQLRequest
        let layout: PlanLayout
        do throws(LarderError) { (request, layout) = try self.request(for: mutation) } catch {
            // What is stored does not fit the schema of today.
            return .rejected(MutationFailure(
                .rejected, code: error.code.rawValue, message: error.message, time: core.now()))
        }
        do throws(TransportError) {
            let answer = try await transport.send(request, deadline: .now + options.timeout)
            return AttemptEnd(answer, along: layout, at: core.now())
        } catch { return AttemptEnd(error, at: core.now()) }
    }

    private func request(for mutation: Mutation) throws(LarderError) -> (GraphQLRequest, PlanLayout) {
        let operation = try PartitionCore.operation(of: mutation)
        var variables = operation.variables
        var headers = options.headers
        switch transport.idempotency {
        case .header(let name): headers.append(.init(name: name, value: mutation.idempotencyKey))
        case .variable(let name): variables[name] = .string(mutation.idempotencyKey)
        case nil: break
        }
        let complete = GraphQLOperation(operation.document, name: operation.name, variables: variables)
        let bound = try core.operations.bound(complete)
        return (try core.request(complete, bound, headers: headers), bound.layout)
    }

    /// Makes the transition that an attempt's end asks for.
    ///
    /// - Parameter pausing: Whether a mutation that is to be sent again waits first.
    private func end(_ mutation: Mutation, _ end: AttemptEnd, pausing: Bool) async throws {
        let now = core.now()
        func again(after time: Duration?) -> Date? {
            guard pausing else { return nil }
            let pause = time ?? options.backoff.pause(after: mutation.attempts, fraction: options.random())
            return now.addingTimeInterval(pause.seconds)
        }
        switch end {
        case .answered(let body): try await acknowledge(mutation, body)
        case .notTaken(let failure, let time):
            try await queue.retryLater(mutation.attempt, at: again(after: time), failure, now: now)
        case .notSignedIn(let failure):
            runner.signedOut()
            try await queue.retryLater(mutation.attempt, at: nil, failure, now: now)
        case .rejected(let failure): try await setAside(mutation, failure)
        case .conflict(let failure): try await resolve(mutation, failure)
        case .unknown(let failure, let time):
            if transport.idempotency != nil {
                if failure.class == .serverFault, runner.countFault(of: mutation.id) >= options.maximumFaults {
                    runner.forgetFaults(of: mutation.id)
                    return try await setAside(mutation, failure)
                }
                try await queue.retryLater(mutation.attempt, at: again(after: time), failure, now: now)
            } else {
                try await ask(mutation, failure)
            }
        case .stopped: break
        }
    }

    private func setAside(_ mutation: Mutation, _ failure: MutationFailure) async throws {
        try await queue.setAside(mutation.id, expecting: .inFlight, failure, now: core.now())
        try core.layers.remove([mutation.id])
    }

    // MARK: Answers

    private func acknowledge(_ mutation: Mutation, _ body: [UInt8]) async throws {
        let real = TemporaryIDReading(mutation).realIDs(in: body)
        try await queue.answer(mutation.attempt, body, temporaryIDs: real, now: core.now())
        options.afterStep(.acknowledged)
        runner.forgetFaults(of: mutation.id)
        var acknowledged = mutation
        acknowledged.answer = body
        // Real ids have taken the places of its own temporary ones.
        if !real.isEmpty, case .present(let stored) = try queue.find(mutation.id) { acknowledged.content = stored.content }
        try await apply(acknowledged)
    }

    /// Stores an answer, once, and settles.
    private func apply(_ mutation: Mutation) async throws {
        let body = mutation.answer ?? []
        var result: [UInt8]?
        var isStored = false
        // Empty where it is known to have taken effect, and the answer is not.
        if !body.isEmpty {
            do throws(LarderError) {
                let operation = try PartitionCore.operation(of: mutation)
                let bound = try core.operations.bound(operation)
                result = try await core.store(body, of: bound, key: mutation.idempotencyKey, [ListChange](mutation))
                isStored = true
            } catch {
                guard Self.misfits.contains(error.code.rawValue) else { throw error }
                // It took effect; what came of it does not fit the schema of today, and is fetched when it is asked for.
                core.logger.warning("an answer no longer fits, and is not stored", metadata: [
                    "mutation": "\(mutation.id)", "error": "\(error)",
                ])
            }
        }
        // Its layer goes out of sight all the same, in every process.
        if !isStored { try await core.noteUnstored(mutation.idempotencyKey) }
        options.afterStep(.stored)
        try await queue.settle(mutation.id, result: result, now: core.now())
        options.afterStep(.settled)
        // Others' temporary ids may have become real ones.
        if mutation.temporaryIDs.isEmpty { core.layers.settled(mutation.id) } else { try core.layers.reload(queue) }
    }

    /// What is thrown where an answer does not fit its operation any more, or the operation the schema, or the answer
    /// the cache: at every further try too.
    private static let misfits: Set<String> = [
        "records.responseMalformed", "records.responseMismatch", "records.schemaMismatch", "records.tooLarge",
        "larder.operation", "larder.variables", "larder.syntax", "larder.data",
    ]

    // MARK: Questions

    private func question(_ mutation: Mutation, _ failure: MutationFailure) throws(LarderError) -> MutationInQuestion {
        MutationInQuestion(
            id: MutationID(mutation.id), operation: try PartitionCore.operation(of: mutation),
            idempotencyKey: mutation.idempotencyKey, serverErrors: failure.details)
    }

    private func resolve(_ mutation: Mutation, _ failure: MutationFailure) async throws {
        guard let name = mutation.content.resolver, let resolver = options.resolvers[name] else {
            return try await setAside(mutation, failure)
        }
        var failure = failure
        let resolution: ConflictResolution
        var revision = Revision(idempotencyKey: UUID().uuidString.lowercased())
        do {
            let question = try question(mutation, failure)
            resolution = try await answering(within: options.questionTimeout) { try await resolver(question) }
            if case .retry(let variables) = resolution { revision.variables = try Value.object(variables).checkedJSON }
        } catch {
            failure.message += "; the resolver \(name) did not decide: \(error)"
            return try await setAside(mutation, failure)
        }
        switch resolution {
        case .setAside: try await setAside(mutation, failure)
        case .keepServers:
            try await setAside(mutation, failure)
            _ = try await queue.discard(mutation.id, dependents: .release, now: core.now())
            try core.layers.reload(queue)
        case .retry:
            try await queue.retryLater(mutation.attempt, at: nil, failure, revision: revision, now: core.now())
            try core.layers.reload(queue)
        }
    }

    /// Asks whether a mutation took effect whose answer was lost.
    private func ask(_ mutation: Mutation, _ failure: MutationFailure) async throws {
        var failure = failure
        failure.class = .outcomeUnknown
        guard let name = mutation.content.checkQuery, let check = options.checks[name] else {
            return try await setAside(mutation, failure)
        }
        let outcome: CheckedOutcome
        var body: [UInt8] = []
        do {
            let question = try question(mutation, failure)
            outcome = try await answering(within: options.questionTimeout) { try await check(question) }
            if case .tookEffect(let response?) = outcome { body = try Value.object(["data": response]).checkedJSON }
        } catch {
            failure.message += "; the check \(name) did not answer: \(error)"
            return try await setAside(mutation, failure)
        }
        switch outcome {
        case .unknown: try await setAside(mutation, failure)
        case .hadNoEffect: try await queue.retryLater(mutation.attempt, at: nil, failure, now: core.now())
        case .tookEffect: try await acknowledge(mutation, body)
        }
    }
}

/// Waits for an answer for a time. Whoever does not answer goes on unheard.
private func answering<Answer: Sendable>(
    within time: Duration, _ body: @escaping @Sendable () async throws -> Answer
) async throws -> Answer {
    let answers = AsyncThrowingStream<Answer, any Error> { continuation in
        let asking = Task {
            do {
                continuation.yield(try await body())
                continuation.finish()
            } catch { continuation.finish(throwing: error) }
        }
        let waiting = Task {
            try await Task.sleep(for: time)
            continuation.finish(throwing: LarderError(.cancelled, "no answer came within \(time)"))
        }
        continuation.onTermination = { _ in
            asking.cancel()
            waiting.cancel()
        }
    }
    for try await answer in answers { return answer }
    throw LarderError(.cancelled, "the task was cancelled")
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
