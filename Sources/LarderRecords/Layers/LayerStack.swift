import LarderFiles
import LarderGraphQL
import LarderLMDB
import Synchronization

/// The layers of a cache as they were set at one time, the first mutation's first.
final class LayerSet: Sendable {
    let layers: SharedList<OptimisticLayer>
    /// Whether a layer was found to be another than was known of it: from then on all are laid, until there are others.
    private let isOutdated = Atomic<Bool>(false)

    init(_ layers: SharedList<OptimisticLayer>) { self.layers = layers }

    /// Whether the first layers are those of another set.
    func begins(with other: LayerSet) -> Bool { layers.begins(with: other.layers) }

    /// Whether the wanted layers can go on top of an overlay as if all had been applied in their order: each comes
    /// after the overlay's layers, or touches nothing of theirs.
    func canLay(_ wanted: OverlaidLayers, over overlay: Overlay) -> Bool {
        let more = wanted.indices(beyond: overlay.laid)
        guard let first = more.first, first < overlay.laid.last else { return true }
        return overlay.isWhole && more.allSatisfy { layers[$0].touched?.isWhole ?? false }
    }

    func canLay(_ layer: Int, over overlay: Overlay) -> Bool {
        layers[layer].touched?.isWhole == true && (overlay.isWhole || layer > overlay.laid.last)
    }

    /// Gets the contents of these layers from where they are kept, except of layers that are overlaid already.
    ///
    /// - Throws: `OutdatedLayers` if that is something else than was known.
    func fetch(_ wanted: OverlaidLayers, beyond laid: OverlaidLayers) throws {
        guard try fetch(wanted.indices(beyond: laid).map { layers[$0] }) else { throw OutdatedLayers() }
    }

    /// Gets the contents of some of the layers from where they are kept.
    ///
    /// - Returns: False if that is something else than was known.
    @discardableResult
    func fetch(_ some: [OptimisticLayer]) throws(RecordError) -> Bool {
        let isAsKnown = try OptimisticLayer.fetch(some)
        if !isAsKnown { isOutdated.store(true, ordering: .releasing) }
        return isAsKnown
    }

    /// What has to be laid where this is demanded.
    func whole(_ demand: UnmetDemand) -> UnmetDemand {
        isOutdated.load(ordering: .acquiring) ? .everything : demand
    }

    /// Where is noted what a read needs of the layers that are not laid; nil if all are.
    func demand(beyond laid: OverlaidLayers, _ index: LayerIndex) -> LayerDemand? {
        laid.count < layers.count ? LayerDemand(index, laid: laid) : nil
    }
}

/// The optimistic layers of a cache, and what they come to over the newest snapshot that was read.
///
/// Layers are laid when a read comes to what they touch, with all that they are connected with; the others make no
/// difference to it. So a read sees what it would see if all were laid.
final class LayerStack: Sendable {
    /// An overlay, and the newest snapshot that it is known to be right for.
    private struct Kept {
        var set: LayerSet
        var overlay: Overlay
        var snapshot: UInt64
        var state: GenerationState
        /// How often layers were added that lie under others, so that all had to be laid once more.
        var repetitions = 0
    }

    private struct State {
        var set: LayerSet?
        var index: (set: LayerSet, index: LayerIndex)?
        var kept: Kept?
        /// The failed layers that `failed` has been told of.
        var failed: Set<AppliedKey> = []
    }

    /// Whether there are layers: all that a read without them looks at.
    private let isActive = Atomic<Bool>(false)
    private let state = Locked(State())
    /// What the observers know of, or will before anything else is told.
    private enum Told {
        case overlay(Overlay?)
        /// There were no listeners.
        case unknown
    }

    private let told = Locked(Told.overlay(nil))
    /// Whether `told` is an overlay. The observers know the records in it by their numbers, and parts have others in
    /// other overlays: from then on every read goes through all layers.
    private let tellsDifferences = Atomic<Bool>(true)
    let numbers = OverlayNumbers()
    /// Told of each layer that is left out.
    private let failed: @Sendable (LayerFailure) -> Void

    private let layersForEachAhead: Int

    init(_ options: RecordCache.Options) {
        failed = options.layerFailed
        layersForEachAhead = max(options.layersForEachAhead, 1)
    }

    /// Nil where there are no layers.
    @inline(__always)
    var current: LayerSet? {
        guard isActive.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.set }
    }

    func replace(with layers: SharedList<OptimisticLayer>) {
        state.withLock { state in
            state.set = layers.isEmpty ? nil : LayerSet(layers)
            if layers.isEmpty {
                state.kept = nil
                state.index = nil
                state.failed = []
                numbers.forget()
            }
            isActive.store(!layers.isEmpty, ordering: .releasing)
        }
    }

    // MARK: Laying

    /// What a read needs as far as is known before it.
    var firstDemand: UnmetDemand { UnmetDemand(isEverything: tellsDifferences.load(ordering: .acquiring)) }

    /// The snapshot under the layers that are laid already, and the demanded ones. What they come to is worked out here
    /// unless it is known.
    func layered(
        _ transaction: consuming ReadTransaction, under set: LayerSet, _ generation: Generation,
        laying demand: UnmetDemand
    ) throws -> LayeredSnapshot {
        let id = transaction.id
        let index = index(of: set)
        let demand = set.whole(demand)
        var wanted = index.always
        var (earlier, repetitions): (Overlay?, Int) = (nil, 0)
        if let kept = state.withLock({ $0.kept }), kept.overlay.generation === generation,
            kept.set === set || set.begins(with: kept.set),
            let state = kept.snapshot == id
                ? kept.state : try kept.overlay.isRight(for: transaction, after: kept.state, index)
        {
            wanted = kept.overlay.laid
            wanted.formUnion(index.always)
            wanted.widen(by: demand, of: set.layers, index)
            if wanted.count == kept.overlay.laid.count {
                if kept.set !== set || kept.snapshot != id {
                    keep(
                        Kept(
                            set: set, overlay: kept.overlay, snapshot: id, state: state, repetitions: kept.repetitions))
                }
                return LayeredSnapshot(
                    transaction, under: kept.overlay, set.demand(beyond: kept.overlay.laid, index))
            }
            repetitions = kept.repetitions
            // One overlay for many layers takes less than one for each. The reader waits for it: they are not too many.
            if let layer = demand.layers.last {
                let count = min(Self.maximumAhead, kept.overlay.laid.count / layersForEachAhead)
                index.addNeighbors(of: layer, atMost: count, to: &wanted) { set.canLay($0, over: kept.overlay) }
            }
            if set.canLay(wanted, over: kept.overlay) {
                earlier = kept.overlay
            } else {
                repetitions += 1
                if repetitions > Self.maximumRepetitions { wanted = OverlaidLayers(all: set.layers.count) }
            }
        } else {
            wanted.widen(by: demand, of: set.layers, index)
        }
        let snapshot = try OverlayBuilder(generation: generation, numbers: numbers)
            .layered(transaction, under: set, index, laying: wanted, goingOnFrom: earlier)
        let overlay = snapshot.layers
        tell(of: overlay, set)
        keep(Kept(set: set, overlay: overlay, snapshot: id, state: overlay.basis.state, repetitions: repetitions))
        return snapshot
    }

    /// Layers that are laid before they are asked for, at a time.
    private static let maximumAhead = 32

    /// Laying what was laid once more may be done so often, with more each time.
    private static let maximumRepetitions = 8

    private func index(of set: LayerSet) -> LayerIndex {
        let known = state.withLock { $0.index }
        if let known, known.set === set { return known.index }
        let earlier = known.flatMap { set.begins(with: $0.set) ? $0.index : nil }
        let index = LayerIndex(set.layers, goingOnFrom: earlier)
        state.withLock { state in
            if state.set === set { state.index = (set, index) }
        }
        return index
    }

    private func keep(_ new: Kept) {
        state.withLock { state in
            guard state.set === new.set else { return }
            if let kept = state.kept, kept.set === new.set {
                // What is newer; of what is as new, what has more.
                let old = (kept.overlay.generation.number, kept.snapshot, kept.overlay.laid.count)
                if old > (new.overlay.generation.number, new.snapshot, new.overlay.laid.count) { return }
            }
            state.kept = new
        }
    }

    /// Tells of the layers that are left out, of each once until it is not.
    private func tell(of overlay: Overlay, _ set: LayerSet) {
        let news = state.withLock { state in
            // Of the layers before these it was told when they were laid.
            var news: [LayerFailure] = []
            for place in overlay.earlierCount..<overlay.order.count {
                let layer = overlay.order[place].layer
                if let failure = overlay.failures[layer] {
                    if state.failed.insert(failure.key).inserted { news.append(failure) }
                } else if !state.failed.isEmpty {
                    state.failed.remove(set.layers[layer].key)
                }
            }
            return news
        }
        for failure in news { failed(failure) }
    }

    // MARK: Telling

    /// Takes note that something may have become different while there were no listeners.
    func nobodyListens() {
        told.withLock { told in
            if case .overlay(nil) = told, current == nil { return }
            told = .unknown
            tellsDifferences.store(false, ordering: .releasing)
        }
    }

    /// What observers have not been told of; nil if that is nothing. The caller tells them.
    func untold(of generations: Generations) -> Commit? {
        told.withLock { told in
            // Loaded before the snapshot, as for a read.
            let set = current
            if case .overlay(nil) = told, set == nil { return nil }
            while true {
                do { return try untold(of: generations, under: set, &told) } catch is OutdatedLayers {
                    // By then all of them are known.
                    continue
                } catch let error as RecordError where error.code == .closed {
                    return nil
                } catch {
                    // The layers may change anything now. The next reader meets the error itself.
                    return Commit(
                        generation: generations.current.identity, changes: .everything,
                        position: ChangePosition(epoch: 0, number: 0), isOfLayers: true)
                }
            }
        }
    }

    private func untold(of generations: Generations, under set: LayerSet?, _ told: inout Told) throws -> Commit? {
        let (new, generation, position) = try generations.takingSnapshot { generation, transaction in
            let position = try GenerationState.stored(transaction, generation.tables).position
            guard let set else { return (Overlay?.none, generation.identity, position) }
            let new = try layered(transaction, under: set, generation, laying: .everything).layers
            return (new, generation.identity, position)
        }
        defer {
            told = .overlay(new)
            tellsDifferences.store(true, ordering: .releasing)
        }
        guard case .overlay(let old) = told else {
            return Commit(generation: generation, changes: .everything, position: position, isOfLayers: true)
        }
        if old === new { return nil }
        // What was told in another generation's numbers is unknown.
        let isSame = old?.generation.identity == generation
        let changes = Overlay.difference(isSame ? old : nil, new)
        if changes.isEmpty { return nil }
        return Commit(generation: generation, changes: changes, position: position, isOfLayers: true)
    }
}

/// What came of reading without all of the layers.
private enum Trial<Result> {
    case done(Result)
    case unmet(UnmetDemand)
}

extension RecordCache {
    /// Runs `body` with a snapshot of the current generation and the layers over it: again where it came to something
    /// that layers touch which are not laid, with those laid.
    ///
    /// - Parameters:
    ///   - set: Loaded before.
    ///   - demand: What `body` needs, if that is known to be more than is known of any.
    func withLayers<Result>(
        _ set: LayerSet, laying demand: UnmetDemand? = nil,
        _ body: (Generation, borrowing LayeredSnapshot) throws -> Result
    ) throws -> Result {
        var demand = demand ?? layers.firstDemand
        var rounds = 0
        while true {
            switch try trial(set, laying: demand, body) {
            case .done(let result): return result
            case .unmet(let more):
                // All that was: others may lay something else meanwhile, and what they laid may be what is kept.
                demand.layers += more.layers
                rounds += 1
                // Each round goes a step further, from object to object: soon it is better to lay all.
                demand.isEverything = demand.isEverything || more.isEverything || rounds > 2
            }
        }
    }

    private func trial<Result>(
        _ set: LayerSet, laying demand: UnmetDemand, _ body: (Generation, borrowing LayeredSnapshot) throws -> Result
    ) throws -> Trial<Result> {
        try generations.takingSnapshot { generation, transaction in
            let snapshot: LayeredSnapshot
            do {
                snapshot = try layers.layered(transaction, under: set, generation, laying: demand)
            } catch is OutdatedLayers { return .unmet(.everything) }
            do {
                let result = try body(generation, snapshot)
                return snapshot.demand?.unmetDemand.map { .unmet($0) } ?? .done(result)
            } catch {
                // It may have failed for want of them.
                if let unmet = snapshot.demand?.unmetDemand { return .unmet(unmet) }
                throw error
            }
        }
    }

    /// Puts these layers over whatever is read from now on, in the place of the layers that were set before. In order:
    /// each sees what the layers before it do.
    ///
    /// Nothing is stored, in any process. Observers are told what became different by a `Commit` that is `isOfLayers`.
    /// A layer stays out of sight in every snapshot that knows of its mutation, so that its answer and the layer are
    /// never seen together; take it out some time after the answer is stored.
    ///
    /// Layers that cannot be worked out are left out; `Options.layerFailed` is told of them.
    ///
    /// - Complexity: O(1) where the layers are a copy of the last ones, with others appended, and otherwise
    ///   O(n). What they hold is worked out when a caller reads what they touch, or listens, and again whenever
    ///   something is committed that they read.
    package func replaceLayers(_ layers: SharedList<OptimisticLayer>) {
        self.layers.replace(with: layers)
        layerTelling.layersWereSet()
    }

    package func replaceLayers(_ layers: [OptimisticLayer]) { replaceLayers(SharedList(layers)) }

    /// The layers that cannot be worked out over what the cache holds now, and so are left out.
    package func layerFailures() throws(RecordError) -> [LayerFailure] {
        guard let set = layers.current else { return [] }
        return try translated {
            try withLayers(set, laying: .everything) { _, snapshot in
                snapshot.layers.failures.sorted { $0.key < $1.key }.map(\.value)
            }
        }
    }
}
