internal import LarderGraphQL
internal import LarderLMDB
internal import Synchronization

/// The layers of a cache as they were set at one time, the first mutation's first.
final class LayerSet: Sendable {
    let layers: [OptimisticLayer]

    init(_ layers: [OptimisticLayer]) { self.layers = layers }

    /// Whether the first layers are those of another set.
    func begins(with other: LayerSet) -> Bool {
        other.layers.count <= layers.count && zip(layers, other.layers).allSatisfy { $0 === $1 }
    }
}

/// The optimistic layers of a cache, and what they come to over the newest snapshot that was read.
final class LayerStack: Sendable {
    /// An overlay, and the newest snapshot that it is known to be right for.
    private struct Kept {
        var set: LayerSet
        var overlay: Overlay
        var snapshot: UInt64
        var state: GenerationState
    }

    private struct State {
        var set: LayerSet?
        var kept: Kept?
    }

    /// Whether there are layers: all that a read without them looks at.
    private let isActive = Atomic<Bool>(false)
    private let state = Mutex(State())
    /// What the observers know of, or will before anything else is told.
    private enum Told {
        case overlay(Overlay?)
        /// There was nobody to be told.
        case unknown
    }

    private let told = Mutex(Told.overlay(nil))
    let numbers = OverlayNumbers()
    /// Told of each layer that is left out.
    private let failed: @Sendable (LayerFailure) -> Void

    init(failed: @escaping @Sendable (LayerFailure) -> Void) { self.failed = failed }

    /// Nil where there are no layers.
    @inline(__always)
    var current: LayerSet? {
        guard isActive.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.set }
    }

    func replace(with layers: [OptimisticLayer]) {
        state.withLock { state in
            state.set = layers.isEmpty ? nil : LayerSet(layers)
            if layers.isEmpty {
                state.kept = nil
                numbers.forget()
            }
            isActive.store(!layers.isEmpty, ordering: .releasing)
        }
    }

    /// The snapshot under the layers. What they come to is worked out here if nobody has done so yet.
    func layered(
        _ transaction: consuming ReadTransaction, under set: LayerSet, _ generation: Generation
    ) throws -> LayeredSnapshot {
        let id = transaction.id
        var earlier: Overlay?
        if let kept = state.withLock({ $0.kept }), kept.overlay.generation === generation,
            let state = kept.snapshot == id
                ? kept.state : try kept.overlay.isRight(for: transaction, after: kept.state, kept.set.layers)
        {
            if kept.set === set {
                if kept.snapshot != id { keep(Kept(set: set, overlay: kept.overlay, snapshot: id, state: state)) }
                return LayeredSnapshot(transaction, under: kept.overlay)
            }
            if set.begins(with: kept.set) { earlier = kept.overlay }
        }
        let snapshot = try OverlayBuilder(generation: generation, numbers: numbers)
            .layered(transaction, under: set.layers, goingOnFrom: earlier)
        let overlay = snapshot.layers
        let known = Set(state.withLock { $0.kept }?.overlay.failures.map(\.key) ?? [])
        for failure in overlay.failures where !known.contains(failure.key) { failed(failure) }
        keep(Kept(set: set, overlay: overlay, snapshot: id, state: overlay.basis.state))
        return snapshot
    }

    private func keep(_ new: Kept) {
        state.withLock { state in
            guard state.set === new.set else { return }
            if let kept = state.kept, kept.set === new.set,
                (kept.overlay.generation.number, kept.snapshot) > (new.overlay.generation.number, new.snapshot)
            {
                return
            }
            state.kept = new
        }
    }

    /// Takes note that something may have become different while nobody listened.
    func nobodyListens() {
        told.withLock { told in
            if case .overlay(nil) = told, current == nil { return }
            told = .unknown
        }
    }

    /// What observers have not been told of; nil if that is nothing. Whoever asks tells them.
    func untold(of cache: RecordCache) -> Commit? {
        told.withLock { told in
            // Loaded before the snapshot, as for a read.
            let set = current
            if case .overlay(nil) = told, set == nil { return nil }
            do {
                return try cache.takingSnapshot { generation, transaction in
                    let position = try GenerationState.stored(transaction, generation.tables).position
                    var new: Overlay?
                    if let set { new = try layered(transaction, under: set, generation).layers }
                    defer { told = .overlay(new) }
                    guard case .overlay(let old) = told else {
                        return Commit(
                            generation: generation.identity, changes: .everything, position: position, isOfLayers: true)
                    }
                    if old === new { return nil }
                    // In another generation's numbers nobody knows what was told.
                    let isSame = old?.generation.identity == generation.identity
                    let changes = Overlay.difference(isSame ? old : nil, new)
                    if changes.isEmpty { return nil }
                    return Commit(
                        generation: generation.identity, changes: changes, position: position, isOfLayers: true)
                }
            } catch let error as RecordError where error.code == .closed {
                return nil
            } catch {
                // They may do anything else. Whoever reads now finds out what keeps from reading.
                return Commit(
                    generation: cache.generation.identity, changes: .everything,
                    position: ChangePosition(epoch: 0, number: 0), isOfLayers: true)
            }
        }
    }
}

extension RecordCache {
    /// Runs `body` with a snapshot of the current generation and the layers over it.
    ///
    /// - Parameter set: Loaded before.
    func withLayers<Result>(
        _ set: LayerSet, _ body: (Generation, borrowing LayeredSnapshot) throws -> Result
    ) throws -> Result {
        try takingSnapshot { generation, transaction in
            try body(generation, try layers.layered(transaction, under: set, generation))
        }
    }

    /// Puts these layers over whatever is read from now on, in the place of those that were set before. In order: each
    /// sees what those before it do.
    ///
    /// Nothing is stored, in any process. Observers are told what became different by a `Commit` that is `isOfLayers`.
    /// A layer stays out of sight in every snapshot that knows of its mutation, so that its answer and the layer are
    /// never seen together; take it out some time after the answer is stored.
    ///
    /// Layers that cannot be worked out are left out; `Options.layerFailed` is told of them.
    ///
    /// - Complexity: O(n) in the layers. What they hold is worked out when somebody reads or listens next, and again
    ///   whenever something is committed that they read.
    package func replaceLayers(_ layers: [OptimisticLayer]) {
        self.layers.replace(with: layers)
        writer.layersWereSet(in: self)
    }

    /// The layers that cannot be worked out over what the cache holds now, and so are left out.
    package func layerFailures() throws(RecordError) -> [LayerFailure] {
        guard let set = layers.current else { return [] }
        return try translated { try withLayers(set) { _, snapshot in snapshot.layers.failures } }
    }
}
