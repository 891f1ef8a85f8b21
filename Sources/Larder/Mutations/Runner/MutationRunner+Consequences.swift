import Foundation
import LarderOperations

/// Decides what follows from an attempt's end for its mutation: whether it is sent again, and when.
extension MutationRunner {
    /// Decides whether the mutation is done, sent again, revised, discarded or set aside.
    ///
    /// - Parameter turn: What was known of the server when the attempt was begun; nil for another runner's.
    func consequence(
        of end: AttemptEnd, for mutation: Mutation, sentIn turn: Turn?, _ attempts: AttemptRunner
    ) async -> AttemptConsequence {
        var failure: MutationFailure
        switch end.outcome {
        case .answer(let answer): return .answered(answer.body, answer)
        case .failure(let found): failure = found
        }
        let later = core.now().addingTimeInterval(
            options.backoff.pause(after: mutation.attempts, asked: end.retryAfter, fraction: options.random()).seconds)
        // An attempt that has not been sent, or was another runner's, may be sent at once.
        let again = turn == nil || end.isUnsent ? nil : later
        switch end.verdict.effect {
        case .rejected where end.verdict.mayWait:
            // It is the mutation that is refused where the server is there. That it has come after the refusal is ruled
            // out by another attempt.
            if await findsServer(attempts.transport), isRefusedAgain(mutation.id) { return .setAside(failure) }
            failure.class = .unusableServer
            return .retry(failure, at: later, leaving: .asBefore)
        case .none(.notSignedIn): return .retry(failure, at: nil, leaving: .asBefore)
        case .none: return .retry(failure, at: again, leaving: .asBefore)
        // What took effect has an answer.
        case .rejected, .took: return .setAside(failure)
        case .conflict: return await consequenceOfConflict(for: mutation, failure, again, orAsking: later)
        case .unknown(let doubt):
            guard doubt != .final, (mutation.telling ?? mutation.doubt ?? .none).allowsRepeat(attempts.telling) else {
                return await consequence(of: doubt, for: mutation, failure, again, orAsking: later)
            }
            if await isOwnFault(end.verdict, sentIn: turn, attempts.transport), isTooOften(mutation) {
                return .setAside(failure)
            }
            return .retry(failure, at: end.verdict.isSignedOut ? nil : again, leaving: .attempt)
        }
    }

    /// Whether a fault is the mutation's. That the server does not know the user, has no time, or is none, says nothing
    /// of the mutation.
    private func isOwnFault(
        _ verdict: Verdict, sentIn turn: Turn?, _ transport: any GraphQLTransport
    ) async -> Bool {
        guard verdict.effect == .unknown(.fault), !verdict.isSignedOut, !verdict.isThrottled else { return false }
        guard verdict.isServerInDoubt else { return true }
        return await findsServer(transport) && turn.map(hasServerStayed) ?? true
    }

    /// What the program says to a conflict.
    ///
    /// - Parameters:
    ///   - again: When the mutation may be sent again with what the resolver says.
    ///   - later: When it is sent again as it is where the resolver did not answer.
    private func consequenceOfConflict(
        for mutation: Mutation, _ failure: MutationFailure, _ again: Date?, orAsking later: Date
    ) async -> AttemptConsequence {
        var failure = failure
        await core.storeConflicts(failure.details, of: mutation)
        switch await ProgramQuestions(options, on: executor).resolution(of: mutation, failure) {
        // A suspension has broken off the question: that says nothing of the resolver.
        case .silence where Task.isCancelled: return .retry(failure, at: nil, leaving: .asBefore)
        case .silence(let why):
            failure.message += why
            // It had no effect, and the server's next refusal asks the resolver again.
            return isTooOften(mutation) ? .setAside(failure) : .retry(failure, at: later, leaving: .asBefore)
        case .unusable(let why):
            failure.message += why
            return .setAside(failure)
        case .answer(.setAside): return .setAside(failure)
        case .answer(.keepServers): return .discarded(failure)
        case .answer(.retry(let variables)):
            return isTooOften(mutation) ? .setAside(failure) : .revised(failure, at: again, variables: variables)
        }
    }

    /// What the program's check says of a mutation whose answer was lost.
    ///
    /// - Parameters:
    ///   - again: When the mutation may be sent again where it had no effect.
    ///   - later: When the check is asked again where it did not answer.
    private func consequence(
        of doubt: Verdict.Doubt, for mutation: Mutation, _ failure: MutationFailure, _ again: Date?,
        orAsking later: Date
    ) async -> AttemptConsequence {
        var failure = failure
        failure.class = .outcomeUnknown
        switch await ProgramQuestions(options, on: executor).outcome(of: mutation, failure) {
        case .silence(let why):
            failure.message += why
            let left = doubt == .final ? RemainingDoubt.unrepeatable : .attempt
            // As of a resolver.
            if Task.isCancelled { return .retry(failure, at: nil, leaving: left) }
            return isTooOften(mutation) ? .setAside(failure) : .retry(failure, at: later, leaving: left)
        case .unusable(let why):
            failure.message += why
            return .setAside(failure)
        case .answer(.unknown): return .setAside(failure)
        case .answer(.hadNoEffect): return .retry(failure, at: again, leaving: .none)
        case .answer(.tookEffect(let body)): return .answered(body, nil)
        }
    }

    // MARK: What attempts have shown of a mutation

    /// Counts one more of the faults after which a mutation is set aside.
    ///
    /// - Returns: Whether these were too many.
    private func isTooOften(_ mutation: Mutation) -> Bool {
        progress.withLock { progress in
            progress.faults[mutation.id, default: 0] += 1
            return progress.faults[mutation.id, default: 0] >= options.maximumFaults
        }
    }

    /// Whether it was refused before, of which a note is taken.
    private func isRefusedAgain(_ mutation: UUID) -> Bool {
        progress.withLock { !$0.refused.insert(mutation).inserted }
    }

    func forgetFaults(of mutation: UUID) {
        progress.withLock { progress in
            progress.faults.removeValue(forKey: mutation)
            progress.refused.remove(mutation)
        }
    }
}
