public import Foundation
import LarderGraphQL
import LarderOperations
import LarderRecords
import Logging

extension Partition {
    /// Queues a mutation, which is sent when it is its turn and the server can be reached, after restarts as well.
    ///
    /// When this returns, the mutation is on disk and survives the loss of power. A `MutationRunner` sends it.
    ///
    /// - Throws: `.operation`, `.variables`, `.syntax` for what cannot be asked; `.data` where the optimistic response
    ///   does not fit the operation; `.unknownUpdater`; `operations.duplicate` where the id was used before, or the
    ///   idempotency key by a mutation that was not discarded; `.unknownTransfer`, `.invalidTransfer` and
    ///   `operations.wrongState` for files that cannot be its own; `operations.unknownTemporaryID`;
    ///   `operations.notFound` where it depends on a mutation that the store does not know; `operations.full`,
    ///   `operations.busy` and others where it cannot be stored; `operations.commitUnknown` where the disk failed, and it
    ///   may be stored: the status of the error's `mutation` says whether it is, and trying again with the same id is
    ///   safe.
    @discardableResult
    public func enqueue(
        _ operation: GraphQLOperation, options: MutationOptions = MutationOptions()
    ) async throws(LarderError) -> MutationReceipt {
        try await core.requireAwake()
        let draft = try draft(operation, options)
        let queue = try core.operationsStore.database().mutations
        let removals = core.layers.removals
        let mutation: Mutation
        do { mutation = try await queue.enqueue(draft) } catch { throw LarderError(error) }
        show([mutation], after: removals, queue)
        return self.mutation(MutationID(mutation.id))
    }

    /// Queues a mutation of the program's own type.
    ///
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - optimistic: What the server is expected to answer, shown until it does; in place of
    ///     `options.optimisticResponse`.
    ///   - options: The mutation's lane, expiry, dependencies and files.
    /// - Throws: As for an untyped one; `.data` where the optimistic answer cannot be encoded.
    @discardableResult
    public func enqueue<Typed: TypedOperation>(
        _ operation: Typed, optimistic: Typed.Data? = nil, options: MutationOptions = MutationOptions()
    ) async throws(LarderError) -> MutationReceipt where Typed.Data: Encodable {
        var options = options
        if let optimistic {
            do { options.optimisticResponse = try ValueEncoder.value(of: optimistic) } catch {
                throw LarderError(.data, "The optimistic answer cannot be encoded", cause: error)
            }
        }
        return try await enqueue(operation.operation, options: options)
    }

    /// Queues many mutations, all of them or none, in one commit: what belongs together, and a great deal that would
    /// otherwise wait for the disk one after the other.
    ///
    /// They are queued in the order in which they are given. Later ones may depend on earlier ones, by the ids that
    /// these are given, and use their temporary ids. Each is sent by itself, and ends for itself.
    ///
    /// - Returns: A receipt for each, in the same order.
    /// - Throws: As for one, for the first that cannot be queued; then none is.
    @discardableResult
    public func enqueue(
        _ mutations: [(operation: GraphQLOperation, options: MutationOptions)]
    ) async throws(LarderError) -> [MutationReceipt] {
        try await core.requireAwake()
        var drafts: [MutationDraft] = []
        drafts.reserveCapacity(mutations.count)
        for (operation, options) in mutations { drafts.append(try draft(operation, options)) }
        guard !drafts.isEmpty else { return [] }
        let queue = try core.operationsStore.database().mutations
        let removals = core.layers.removals
        let stored: [Mutation]
        do { stored = try await queue.enqueue(drafts) } catch { throw LarderError(error) }
        show(stored, after: removals, queue)
        return stored.map { mutation(MutationID($0.id)) }
    }

    /// Shows the queued mutations, and wakes the runner.
    private func show(_ mutations: [Mutation], after removals: UInt64, _ queue: MutationQueue) {
        core.layers.put(mutations, after: removals, queue)
        core.followOthers()
        core.operationsStore.changeSignal.notify()
        core.runners.noticeMissing(MutationRunner.lockSuffix) {
            core.logger.notice(
                "a mutation is queued, and nothing in this process sends it yet: call run() of the partition")
        }
    }

    /// A mutation that was queued before, in this process or another; whether it is known, its status tells.
    public func mutation(_ id: MutationID) -> MutationReceipt {
        MutationReceipt(id: id, operationsStore: core.operationsStore)
    }

    /// The mutations that are queued or set aside, in their order.
    ///
    /// - Parameter states: Nil for all that are not settled.
    public func mutations(in states: Set<MutationStatus.State>? = nil) throws(LarderError) -> [MutationStatus] {
        guard let database = try core.operationsStore.database(making: false) else { return [] }
        let stored = states.map { states in Set(MutationState.allCases.filter { states.contains(.init($0)) }) }
        do {
            let filter = MutationFilter(partition: core.name, states: stored)
            return try database.mutations.list(filter).map(MutationStatus.init)
        } catch { throw LarderError(error) }
    }

    /// Whether anything is queued, under way or set aside that the server may not have. O(log n).
    public func hasUnsentMutations() throws(LarderError) -> Bool {
        guard let database = try core.operationsStore.database(making: false) else { return false }
        do { return try database.mutations.hasUnsent(in: core.name) } catch { throw LarderError(error) }
    }

    // MARK: Dead letters

    /// Changes the variables of a mutation that was set aside, before it is replayed. Where it was begun before, it
    /// gets a new idempotency key: an edited mutation is no repeat.
    ///
    /// - Throws: `.variables` where they do not fit the operation; `.operation` where the operation does not fit the
    ///   schema any more; `operations.notFound`, `operations.wrongState`, `operations.unknownTemporaryID`.
    public func editMutation(_ id: MutationID, variables: [String: Value]) async throws(LarderError) {
        let json = try Value.object(variables).checkedJSON
        let standing: Standing
        do { standing = try core.operationsStore.database().mutations.find(id.uuid) } catch {
            throw LarderError(translating: error)
        }
        if case .present(let mutation) = standing {
            // The document of a mutation never changes.
            let operation = GraphQLOperation(mutation.content.document, name: mutation.content.operationName)
            _ = try core.operations.boundOnce(core.operations.compiled(operation), variables)
        }
        try await change { (queue) throws(OperationsError) in
            try await queue.edit(id.uuid, Revision(variables: json))
        }
    }

    /// Makes a mutation that was set aside pending again, at its old place in the order.
    ///
    /// - Parameters:
    ///   - id: The id of the mutation.
    ///   - expires: Its new expiry. Nil keeps the old one, unless that is over.
    /// - Throws: `operations.notFound`; `operations.wrongState`, also where a file that it waits for has failed or was
    ///   given up: retry the transfer, which makes the mutation pending as well.
    public func replayMutation(_ id: MutationID, expires: Date? = nil) async throws(LarderError) {
        let now = core.now()
        try await change { (queue) throws(OperationsError) in
            try await queue.replay(id.uuid, expires: expires, now: now)
        }
    }

    /// What becomes of the mutations that depend on one that is discarded.
    public enum Dependents: Sendable, Hashable {
        /// They are set aside, with the reason.
        case setAside
        /// They wait for it no more.
        case release
    }

    /// Gives up a mutation that was set aside.
    ///
    /// - Throws: `operations.notFound`, `operations.wrongState`.
    public func discardMutation(_ id: MutationID, dependents: Dependents) async throws(LarderError) {
        let now = core.now()
        try await change { (queue) throws(OperationsError) in
            try await queue.discard(
                id.uuid,
                dependents: dependents == .release
                    ? .release : .setAside(reason: "the mutation that it depends on was discarded"), now: now)
        }
    }

    private func change(
        _ body: (MutationQueue) async throws(OperationsError) -> Void
    ) async throws(LarderError) {
        try await core.requireAwake()
        let queue = try core.operationsStore.database().mutations
        do { try await body(queue) } catch { throw LarderError(error) }
        try core.layers.reload(queue)
        core.operationsStore.changeSignal.notify()
    }

    private func draft(
        _ operation: GraphQLOperation, _ options: MutationOptions
    ) throws(LarderError) -> MutationDraft {
        let operation = try core.complete(operation, with: options.files)
        let compiled = try core.operations.compiled(operation)
        try core.requireNoTemporaryID(inTextOf: operation, compiled)
        let bound = try core.operations.boundOnce(compiled, operation.variables, exposesAdded: true)
        guard bound.layout.plan.kind == .mutation else {
            throw LarderError(.operation, "Only mutations are queued; use fetch")
        }
        var optimistic: [UInt8]?
        var layer = OptimisticLayer.Content(edits: options.listChanges.map(\.edit))
        if let response = options.optimisticResponse {
            let json = try response.checkedJSON
            do throws(RecordError) {
                layer.response = .init(try ParsedResponse.parse(data: json, along: bound.layout), of: bound)
            } catch {
                throw LarderError(.data, "The optimistic response does not fit: \(error.message)", cause: error)
            }
            optimistic = json
        }
        if let name = options.updater, core.operations.updaters[name] == nil { throw .unknownUpdater(name) }
        // What an updater will do is not known.
        let isKnown = options.updater == nil || optimistic == nil
        let touched = isKnown ? TouchedKeys(layer)?.stored(schema: core.operations.numberOfSchema) : nil
        return MutationDraft(
            id: options.id?.uuid, partition: core.name, lane: options.lane.name,
            idempotencyKey: options.idempotencyKey,
            content: MutationContent(
                document: operation.document, operationName: compiled.name,
                variables: Value.object(operation.variables).json, optimisticResponse: optimistic,
                listEdits: options.listChanges.isEmpty ? nil : try options.listChanges.stored,
                updater: options.updater, resolver: options.resolver, checkQuery: options.check),
            touched: touched, dependencies: options.dependencies.map(\.uuid),
            transfers: options.files.map(\.upload.uuid), temporaryIDs: options.temporaryIDs.map(\.token),
            created: core.now(), expires: options.expires)
    }
}
