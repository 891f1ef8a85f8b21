internal import LarderGraphQL
internal import LarderLMDB

/// Lays layers over a snapshot, one after the other.
struct OverlayBuilder {
    let generation: Generation
    let numbers: OverlayNumbers

    /// - Parameter earlier: What the first of the layers come to over the same snapshot, where that is known.
    /// - Throws: What keeps the snapshot from being read. A layer that cannot be worked out is left out, and is among
    ///   the overlay's failures.
    /// - Complexity: O(n) in what the layers hold.
    func layered(
        _ base: consuming ReadTransaction, under layers: [OptimisticLayer], goingOnFrom earlier: Overlay? = nil
    ) throws -> LayeredSnapshot {
        let state = try GenerationState.stored(base, generation.tables)
        guard state.nextRecord < OverlayNumbers.firstRecord, state.nextField < OverlayNumbers.firstField else {
            throw RecordError(.full, "the cache has no numbers left for optimistic layers; clear it")
        }
        let overlay = earlier.map { Overlay(goingOnFrom: $0, state) }
            ?? Overlay(generation, Overlay.Basis(state: state))
        var snapshot = LayeredSnapshot(base, under: overlay)
        var failed: [Int: LayerFailure] = [:]
        // What a layer did before it failed cannot be taken back: all is laid once more, without it.
        while let (index, error) = try lay(layers, &failed, snapshot) {
            failed[index] = LayerFailure(key: layers[index].key, error: error)
            // It stays among what the overlay depends on: it may come to work out.
            snapshot.layers = Overlay(generation, snapshot.layers.basis)
        }
        // Those of what it goes on from are there already.
        if !failed.isEmpty { snapshot.layers.failures = failed.sorted { $0.key < $1.key }.map(\.value) }
        snapshot.layers.finish()
        return snapshot
    }

    /// Nil if all of them could be worked out, or the index of the first that could not.
    private func lay(
        _ layers: [OptimisticLayer], _ failed: inout [Int: LayerFailure], _ snapshot: borrowing LayeredSnapshot
    ) throws -> (Int, RecordError)? {
        let scratch = ByteBuffer()
        for (index, layer) in layers.enumerated().dropFirst(snapshot.layers.isApplied.count) {
            let isApplied = try generation.tables.applied(layer.key.text, snapshot) != nil
            snapshot.layers.isApplied.append(isApplied)
            guard !isApplied, failed[index] == nil else { continue }
            // What cannot be read has done nothing yet.
            do throws(RecordError) { _ = try layer.content } catch {
                failed[index] = LayerFailure(key: layer.key, error: error)
                continue
            }
            do {
                try lay(layer, snapshot, scratch)
            } catch let error as LMDBError {
                throw error
            } catch {
                return (index, RecordError.translated(error))
            }
        }
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
        for key in content.removals where key != CacheKey.queryRoot {
            guard let id = try generation.tables.record(of: key, snapshot) else { continue }
            var changes = blank
            if try changes.removeEntity(id, leavingTombstone: true, generation, snapshot) { overlay.lay(changes) }
        }
        for edit in content.edits {
            var changes = blank
            try changes.edit(edit, generation, snapshot)
            if !changes.isEmpty { overlay.lay(changes) }
        }
    }
}
