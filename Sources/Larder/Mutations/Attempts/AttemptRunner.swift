import Foundation
import LarderOperations
import LarderRecords
import Logging

/// Sends single mutations, reports how each attempt ended, and carries out what the `MutationRunner` decides on that. It
/// knows nothing of other attempts.
///
/// Where the server recognizes repeats, an answer is noted and the next mutation of the lane begun in one commit.
/// Meanwhile one task for all lanes stores the answers in their order: answers that wait together are stored in one
/// commit of the cache and one of the queue. Where the server does not recognize them, each answer is stored before
/// the next mutation of its lane is begun.
struct AttemptRunner: Sendable {
    let core: PartitionCore
    let queue: MutationQueue
    let transport: any GraphQLTransport
    let owner: String
    let options: MutationRunner.Options
    /// Where requests are made beside the thread that waits for the disk.
    let executor: any TaskExecutor
    /// Noted, and yet to be stored.
    let answers = AnswerBatch()

    /// How the server is told the key.
    var telling: KeyDelivery { KeyDelivery(transport.idempotency) }

    // MARK: Attempts

    /// Nil where another caller has edited, discarded or set aside the mutation meanwhile.
    func begin(_ id: UUID) async throws(OperationsError) -> Mutation? {
        do {
            return try await queue.begin(id, owner: owner, telling: telling, now: core.now())
        } catch {
            guard [.wrongState, .notFound, .notItsTurn, .expired].contains(error.code) else { throw error }
            return nil
        }
    }

    /// The requests of one lane.
    func requests() -> NextRequest {
        NextRequest(executor) { (mutation) throws(LarderError) in try request(for: mutation) }
    }

    func send(_ mutation: Mutation, _ requests: NextRequest) async -> AttemptEnd {
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
        do throws(TransportError) {
            let answer = try await core.send(request.sent, by: transport, within: options.timeout)
            return AttemptEnd(answer, to: request, transport.refusals, at: core.now())
        } catch {
            core.logger.debug(
                "an attempt of a mutation has failed",
                metadata: [
                    "mutation": "\(mutation.id)", "error": "\(error)",
                ])
            return AttemptEnd(error, transport.refusals, at: core.now())
        }
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
        var bound = try core.operations.boundOnce(compiled, variables)
        if let versioned = try core.withVersions(variables, bound) {
            bound = try core.operations.boundOnce(compiled, versioned)
            isAsQueued = false
        }
        return MutationRequest(
            sent: core.request(compiled, bound, headers: headers), operation: bound, isAsQueued: isAsQueued)
    }

    // MARK: What follows

    /// Commits what follows from an attempt's end for its mutation, as the `MutationRunner` has decided.
    ///
    /// - Parameter requests: The requests of the lane, where its next mutation may be begun.
    /// - Returns: The next of the lane, if it was begun.
    func carryOut(
        _ consequence: AttemptConsequence, for mutation: Mutation, goingOn requests: NextRequest?
    ) async throws -> Mutation? {
        switch consequence {
        case .answered(let body, let answer): return try await note(body, answer, of: mutation, requests)
        case .retry(let failure, let time, let doubt):
            try await queue.retryLater(mutation.attempt, at: time, failure, leaving: doubt, now: core.now())
        case .revised(var failure, let time, let variables):
            let revision = Revision(variables: variables, idempotencyKey: UUID().uuidString.lowercased())
            do throws(OperationsError) {
                // Refused under the old key, it had no effect under it.
                try await queue.retryLater(
                    mutation.attempt, at: time, failure, revision: revision, leaving: RemainingDoubt.none,
                    now: core.now())
            } catch {
                guard [.invalid, .unknownTemporaryID, .duplicate].contains(error.code) else { throw error }
                failure.message += "; what its resolver says cannot be queued: \(error.message)"
                try await setAside(mutation, failure)
            }
            try core.layers.reload(queue)
        case .setAside(let failure): try await setAside(mutation, failure)
        case .discarded(let failure):
            try await setAside(mutation, failure)
            _ = try await queue.discard(mutation.id, dependents: .release, now: core.now())
            try core.layers.reload(queue)
        }
        return nil
    }

    private func setAside(_ mutation: Mutation, _ failure: MutationFailure) async throws(OperationsError) {
        try await queue.setAside(mutation.id, expecting: .inFlight, failure, now: core.now())
        core.layers.remove([mutation.id])
    }

    /// Notes an answer, and hands it on to be stored.
    ///
    /// - Returns: The next of the lane, begun in the same commit unless no other is to be.
    private func note(
        _ body: [UInt8], _ reading: AttemptEnd.Answer?, of mutation: Mutation, _ requests: NextRequest?
    ) async throws -> Mutation? {
        let real = TemporaryIDReading(mutation).realIDs(in: body)
        var next: Mutation?
        // Where the server does not recognize repeats, nothing is in flight for longer than it must be.
        if let requests, transport.idempotency != nil {
            next = try await queue.answer(
                mutation.attempt, body, temporaryIDs: real, beginningNextAs: owner, telling: telling,
                now: core.now(), expecting: requests.expect)
        } else {
            try await queue.answer(mutation.attempt, body, temporaryIDs: real, now: core.now())
        }
        options.reached(.acknowledged)
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
}

extension KeyDelivery {
    fileprivate init(_ idempotency: Idempotency?) {
        self =
            switch idempotency {
            case .header(let name): .header(name)
            case .variable(let name): .variable(name)
            case nil: .none
            }
    }
}
