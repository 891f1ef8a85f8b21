import Foundation
import LarderOperations
import LarderRecords
import Logging

extension AttemptRunner {
    /// Stores answers as they come, until there will be none.
    func storeAnswers() async throws {
        while let waiting = await answers.next() {
            try await store(waiting)
            core.operationsStore.changeSignal.notify()
        }
    }

    /// Stores answers in their order, each once, and settles their mutations.
    func store(_ answers: [NotedAnswer]) async throws {
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
        // Deltas do not tell of what the server could not write there.
        if errors.values.contains(where: { GraphQLError.list($0).contains(where: \.isLate) }) {
            try await core.noteMissed()
        }
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
}
