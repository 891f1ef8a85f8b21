import LarderFiles
package import LarderGraphQL
import LarderLMDB
import Synchronization

/// An operation with its variables, ready to be read from and written to a cache.
///
/// Keep it and use it again: what it looked up in the cache at first, it need not look up twice.
package final class BoundOperation: Sendable {
    package let layout: PlanLayout
    package let binding: OperationBinding
    private let resolved = Locked<ResolvedPlan?>(nil)
    /// The plan with the numbers of one overlay, and of the snapshot under it.
    private let resolvedUnder = Locked<(overlay: Overlay, plan: ResolvedPlan)?>(nil)
    /// About how many bytes the next answer takes.
    let expectedAnswerSize = Atomic<Int>(0)

    /// Expects as much of the next answer. Only what is more, or less than half, is written down, so that threads that read
    /// at the same time seldom write.
    @inline(__always)
    func noteAnswerSize(_ size: Int) {
        let expected = expectedAnswerSize.load(ordering: .relaxed)
        if size > expected || size < expected / 2 { expectedAnswerSize.store(size, ordering: .relaxed) }
    }

    /// About how much memory it takes beside its plan and its variables, in bytes.
    package var size: Int {
        binding.fieldKeys.reduce(0) { $0 + $1.utf8.count + 16 }
            + layout.fields.count * MemoryLayout<FieldRead>.stride * 2 + layout.cases.count * 16
    }

    package init(layout: PlanLayout, binding: OperationBinding) {
        self.layout = layout
        self.binding = binding
    }

    /// The plan with the numbers of one generation, as far as the snapshot knows them.
    ///
    /// - Parameter isCommitted: False for a write transaction. Names that it sees may never be committed, and its own
    ///   number stands for a commit that will hold more: nothing of it is kept.
    func resolved(
        in generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable, isCommitted: Bool
    ) throws -> ResolvedPlan {
        let id = transaction.id
        let kept = resolved.withLock { $0 }
        // Names are only ever added: a plan that lacks none stays right, another one until the next commit.
        if let kept, kept.generation === generation, kept.isComplete || isCommitted && kept.resolvedAt >= id {
            return kept
        }
        let fresh = try ResolvedPlan(
            layout: layout, fieldKeys: binding.fieldKeys, in: generation, resolvedAt: id,
            lookUp: { (name) throws in
                if isCommitted { return try generation.names.number(of: name, transaction, generation.tables) }
                return try generation.names.lookUp(name, transaction, generation.tables)
            })
        if isCommitted { resolved.withLock { $0 = fresh } }
        return fresh
    }

    /// The plan with the numbers of a generation and of the layers over it, which only their readers may see.
    func resolved(under overlay: Overlay, _ transaction: borrowing LayeredSnapshot) throws -> ResolvedPlan {
        let generation = overlay.generation
        if !overlay.hasNames, let kept = resolved.withLock({ $0 }), kept.generation === generation, kept.isComplete {
            return kept
        }
        let id = transaction.id
        if let kept = resolvedUnder.withLock({ $0 }), kept.overlay === overlay, kept.plan.resolvedAt == id {
            return kept.plan
        }
        let fresh = try ResolvedPlan(
            layout: layout, fieldKeys: binding.fieldKeys, in: generation, resolvedAt: id,
            lookUp: { (name) throws in try generation.names.number(of: name, transaction, generation.tables) })
        if !overlay.hasNames, fresh.isComplete {
            resolved.withLock { $0 = fresh }
        } else {
            resolvedUnder.withLock { $0 = (overlay, fresh) }
        }
        return fresh
    }
}
