package import LarderGraphQL
import LarderLMDB

extension RecordCache {
    /// Stores a response to an operation.
    ///
    /// The same response again publishes nothing, and changes nothing but when its parts came. A response without data
    /// changes nothing.
    ///
    /// - Parameters:
    ///   - root: What the response's root is; for mutations and subscriptions it is not stored.
    ///   - key: Of the mutation that this is the answer to. It is noted in the same transaction; where it is known
    ///     already, nothing is changed and `Commit.earlier` says what is known.
    ///   - age: How old the response is, and how old it may become.
    ///   - edits: What becomes of lists, after the response is stored; not where the key is known already.
    ///   - page: The page that the response is: if it changes, the page after it is removed.
    ///   - synchronizing: Makes the commit survive power loss, whatever the cache's durability. A failure to do so is
    ///     thrown, and leaves it committed: writing the same answer again does no harm.
    package func write(
        _ parsed: ParsedResponse, of operation: BoundOperation, to root: Root = .query, age: AnswerAge = AnswerAge(),
        applying key: AppliedKey? = nil, edits: [ListEdit] = [], endingListAfter page: PagePlace? = nil,
        synchronizing: Bool = false, deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        let noted = key.map { WriteStep.note($0, .applied, time: options.now()) }
        let steps =
            (noted.map { [$0] } ?? []) + [.store(parsed, of: operation, at: root, age)] + edits.map(WriteStep.edit)
            + (page.map { [.endList(after: $0)] } ?? [])
        return try await write(steps, synchronizing: synchronizing, deadline: deadline)
    }

    /// Makes one commit of the steps, whole or not at all.
    ///
    /// - Parameters:
    ///   - synchronizing: As `WriteQueue.write`.
    ///   - deadline: For the wait for other writers; the options' own where nil.
    func write(
        _ steps: [WriteStep], synchronizing: Bool = false, deadline: SuspendingClock.Instant?
    ) async throws(RecordError) -> Commit {
        let outcomes = try await writer.write(
            [steps], synchronizing: synchronizing, deadline: deadline ?? .now + options.lockTimeout)
        guard let outcome = outcomes.first else { throw RecordError(.storage, "A write had no outcome") }
        return try outcome.get()
    }

    /// Stores the answers of mutations in their order, in one commit which survives power loss.
    ///
    /// - Returns: For each, in order, what came of it. One that does not fit fails alone; where there is no room for
    ///   one, later ones are not stored either: nothing older is ever stored over what is newer.
    /// - Throws: What kept all of them from being tried.
    package func write(
        _ answers: [MutationAnswer], deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> [Result<Commit, RecordError>] {
        guard !answers.isEmpty else { return [] }
        // The server has done what they tell of: behind other writes of this process they wait for longer.
        let turnDeadline = SuspendingClock.now + max(options.lockTimeout, .seconds(60))
        let parts = answers.map { answer -> [WriteStep] in
            [
                .note(answer.key, .applied, time: options.now()),
                .store(answer.parsed, of: answer.operation, at: .query),
            ] + answer.edits.map(WriteStep.edit)
        }
        return try await writer.write(
            parts, synchronizing: true, deadline: deadline ?? .now + options.lockTimeout, turnDeadline: turnDeadline)
    }

    /// More objects than this share no commit: the log of changes would not name all of them.
    private static let sharedObjects = 2_000

    /// Stores responses in their order, in as few commits as may be.
    ///
    /// - Returns: The outcome of each response, in order. Responses that were stored together share one `Commit`, whose
    ///   changes are those of all. A response that does not fit fails alone; where there is no room for one, later ones
    ///   are not stored either.
    package func write(
        _ responses: [(parsed: ParsedResponse, operation: BoundOperation)]
    ) async -> [Result<Commit, RecordError>] {
        var outcomes: [Result<Commit, RecordError>] = []
        while outcomes.count < responses.count {
            var objects = 0
            let next = responses[outcomes.count...].prefix { response in
                defer { objects += response.parsed.objectCount }
                return objects == 0 || objects + response.parsed.objectCount <= Self.sharedObjects
            }
            do throws(RecordError) { outcomes += try await writeTogether(Array(next)) } catch {
                outcomes += Array(repeating: .failure(error), count: responses.count - outcomes.count)
            }
        }
        return outcomes
    }

    private func writeTogether(
        _ responses: [(parsed: ParsedResponse, operation: BoundOperation)]
    ) async throws(RecordError) -> [Result<Commit, RecordError>] {
        let deadline = SuspendingClock.now + options.lockTimeout
        do throws(RecordError) {
            let commit = try await write(Self.joinedSteps(responses), deadline: deadline)
            return responses.map { _ in .success(commit) }
        } catch {
            guard error.code != .busy else { throw error }
            // One of them may not be storable. Each is a part of its own now, so that the others are stored.
            return try await writer.write(
                responses.map { [.store($0.parsed, of: $0.operation, at: .query)] }, deadline: deadline)
        }
    }

    /// Stores responses in their order, those of one operation that follow each other joined.
    private static func joinedSteps(
        _ responses: [(parsed: ParsedResponse, operation: BoundOperation)]
    ) -> [WriteStep] {
        var steps: [WriteStep] = []
        var rest = responses[...]
        while let operation = rest.first?.operation {
            let group = rest.prefix { $0.operation === operation }
            rest = rest.dropFirst(group.count)
            let parsed = group.map(\.parsed)
            steps += (operation.layout.storesRoot ? parsed : JoinedResponse.joining(parsed)).map {
                .store($0, of: operation, at: .query)
            }
        }
        return steps
    }

    /// Reads an answer, lets `body` make a response of it, and stores that, all in one transaction.
    ///
    /// If `body` throws, nothing is changed. It runs on the writer's thread and must not wait for another write, which
    /// is `.busy` at its deadline; it may run again where the transaction has to be made again.
    ///
    /// - Parameter body: Answers the new data, or nil to leave everything as it is.
    package func update(
        _ operation: BoundOperation, at root: Root = .query, deadline: SuspendingClock.Instant? = nil,
        _ body: @escaping @Sendable (CacheAnswer) throws -> ParsedResponse?
    ) async throws(RecordError) -> Commit {
        try await write([.update(operation, at: root, body)], deadline: deadline)
    }

    /// How an object goes.
    package enum Removal: Sendable, Hashable {
        /// It is known to be no more: lists go without it, and references to it read null.
        case deleted
        /// Nothing is known of it any more: reading it is a miss until it comes again.
        case evicted
    }

    /// Removes objects by their cache keys; keys that are not in the cache are passed over.
    package func remove(
        keys: [String], as removal: Removal, deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write([.removeObjects(keys: keys, removal)], deadline: deadline)
    }

    /// Removes all objects of a type.
    ///
    /// - Complexity: O(n) in the objects of the type.
    package func remove(
        type: String, as removal: Removal, deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write([.removeType(type, removal)], deadline: deadline)
    }

    /// Removes a field of an object with whatever arguments it was stored, or of the root of all queries.
    ///
    /// - Parameter field: The field's name, or a whole field key to remove one set of arguments.
    package func remove(
        field: String, of key: String, deadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> Commit {
        try await write([.removeField(field, of: key)], deadline: deadline)
    }
}
