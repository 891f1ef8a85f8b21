import LarderGraphQL
import LarderLMDB

/// Lays layers over a snapshot, one after the other.
struct OverlayBuilder {
    let generation: Generation
    let numbers: OverlayNumbers

    /// - Parameters:
    ///   - wanted: The layers to lay, by their indices in the set. Layers that they turn out to depend on are laid too.
    ///   - earlier: What some of them come to over the same snapshot, where that is known, and where the others can be
    ///     laid over those.
    /// - Throws: What keeps the snapshot, or what layers do, from being read; `OutdatedLayers`. A layer that cannot be
    ///   worked out is left out, and is among the overlay's failures.
    /// - Complexity: O(n) in what the layers hold that are not in `earlier`.
    func layered(
        _ base: consuming ReadTransaction, under set: LayerSet, _ index: LayerIndex, laying wanted: OverlaidLayers,
        goingOnFrom earlier: Overlay? = nil
    ) throws -> LayeredSnapshot {
        let state = try GenerationState.stored(base, generation.tables)
        guard state.nextRecord < OverlayNumbers.firstRecord, state.nextField < OverlayNumbers.firstField else {
            throw RecordError(.full, "The cache has no numbers left for optimistic layers; clear it")
        }
        let overlay =
            earlier.map { Overlay(goingOnFrom: $0, state) }
            ?? Overlay(generation, Overlay.Basis(state: state))
        var snapshot = LayeredSnapshot(base, under: overlay, nil)
        var (wanted, failed) = (wanted, [Int: LayerFailure]())
        var widenings = 0
        var closesEachList = false
        while true {
            try set.fetch(wanted, beyond: snapshot.layers.laid)
            snapshot.demand = set.demand(beyond: wanted, index)
            let failure = try lay(wanted, of: set.layers, &failed, snapshot, closesEachList)
            if let unmet = snapshot.demand?.unmetDemand {
                // They lie under what was laid, which may have failed for want of them.
                widenings += 1
                wanted.widen(by: unmet, widenings > Self.maximumWidenings, of: set.layers, index)
                failed = [:]
            } else if let (layer, error) = failure {
                // What a layer did before it failed cannot be taken back: all is laid once more, without it.
                failed[layer] = LayerFailure(key: set.layers[layer].key, error: error)
            } else if snapshot.layers.openLists.failure != nil {
                // Whose edit made the list too large is found out by encoding it after each.
                closesEachList = true
            } else {
                break
            }
            // What was read stays among what the overlay depends on: a layer may come to work out.
            snapshot.layers = Overlay(generation, snapshot.layers.basis)
        }
        // The failures of the overlay that it goes on from are there already.
        if !failed.isEmpty { snapshot.layers.failures.merge(failed) { $1 } }
        snapshot.layers.finish()
        snapshot.demand = set.demand(beyond: snapshot.layers.laid, index)
        return snapshot
    }

    /// After so many rounds in which more turned out to be needed, everything is laid.
    private static let maximumWidenings = 4

    /// Nil if all of them could be worked out, or the index of the first that could not.
    private func lay(
        _ wanted: OverlaidLayers, of layers: SharedList<OptimisticLayer>, _ failed: inout [Int: LayerFailure],
        _ snapshot: borrowing LayeredSnapshot, _ closesEachList: Bool
    ) throws -> (Int, RecordError)? {
        let scratch = ByteBuffer()
        for index in wanted.indices(beyond: snapshot.layers.laid) {
            let layer = layers[index]
            let isApplied = try generation.tables.applied(layer.key.text, snapshot) != nil
            snapshot.layers.begin(index, layer.touched, isApplied: isApplied)
            guard !isApplied, failed[index] == nil else { continue }
            // What cannot be read has done nothing yet.
            do throws(RecordError) { _ = try layer.content } catch {
                failed[index] = LayerFailure(key: layer.key, error: error)
                continue
            }
            do {
                try lay(layer, snapshot, scratch)
                if closesEachList { try snapshot.layers.closeLists() }
            } catch let error as LMDBError {
                throw error
            } catch {
                return (index, RecordError.translated(error))
            }
        }
        // Where it fails, `openLists` has the failure.
        try? snapshot.layers.closeLists()
        return nil
    }

    private func lay(
        _ layer: OptimisticLayer, _ snapshot: borrowing LayeredSnapshot, _ scratch: ByteBuffer
    ) throws {
        let overlay = snapshot.layers
        var blank: RecordChanges {
            var changes = RecordChanges(overlay.basis.state, scratch: scratch)
            changes.numbers = numbers
            return changes
        }
        let content = try layer.content
        if let answer = content.response {
            let writer = ResponseWriter(answer.parsed, of: answer.operation, in: generation, blank)
            overlay.lay(try writer.run(.init(answer.root, answer.operation), snapshot))
        }
        for key in content.removals where key != CacheKey.queryRoot.text {
            guard let id = try generation.tables.record(of: key, snapshot) else { continue }
            var changes = blank
            if try changes.removeEntity(id, leavingTombstone: true, generation, snapshot) { overlay.lay(changes) }
        }
        for edit in content.edits { try overlay.edit(edit, blank, snapshot) }
    }
}
