internal import LarderGraphQL
internal import LarderLMDB

extension Overlay {
    /// Whether the overlay is what the layers come to over a newer snapshot too: nothing that was read for it has
    /// become different, and none of its mutations has become known.
    ///
    /// - Parameters:
    ///   - earlier: The counters of a snapshot for which it is right.
    ///   - layers: Of the set whose indices it has.
    /// - Returns: The newer snapshot's counters; nil where it has to be worked out anew.
    /// - Complexity: O(n) in the layers that are in it and in what was changed since.
    func isRight(
        for transaction: borrowing ReadTransaction, after earlier: GenerationState, _ layers: [OptimisticLayer]
    ) throws -> GenerationState? {
        let tables = generation.tables
        let state = try GenerationState.stored(transaction, tables)
        guard state.epoch == earlier.epoch, state.lastChange >= earlier.lastChange,
            earlier.lastChange + 1 >= state.firstChange
        else { return nil }
        for (layer, wasApplied) in order {
            guard try (tables.applied(layers[layer].key.text, transaction) != nil) == wasApplied else { return nil }
        }
        if state.nextField != earlier.nextField {
            for name in basis.absentNames {
                if try generation.names.number(of: name.text, transaction, tables) != nil { return nil }
            }
        }
        if state.nextRecord != earlier.nextRecord {
            for key in basis.absentKeys where try tables.record(of: key.text, transaction) != nil { return nil }
        }
        guard state.lastChange > earlier.lastChange else { return state }
        var cursor = try transaction.cursor(in: tables.changes)
        var entry = try cursor.seek(atLeast: earlier.lastChange + 1)
        while let current = entry {
            let set = try current.value.withUnsafeBytes { bytes throws(RecordError) in
                guard let text = SealedText.text(bytes) else { throw ChangeSet.damaged }
                return try ChangeSet(encoded: text)
            }
            if set.isEverything || set.fields.contains(where: { basis.records.contains($0.record) }) { return nil }
            entry = try cursor.next()
        }
        return state
    }

    /// What is different in answers under one overlay and under another, as far as the overlays make the difference.
    ///
    /// May name more than is different: what both have changed, and not in the same way.
    static func difference(_ old: Overlay?, _ new: Overlay?) -> ChangeSet {
        var changes = ChangeSet()
        var created: Set<ExactText> = []
        for field in (old?.touched ?? []).union(new?.touched ?? []) where !isSame(field, old, new) {
            // A name that only layers know has another number in the store.
            let isOfLayers = field.field >= OverlayNumbers.firstField
            changes.fields.append(isOfLayers ? RecordField(record: field.record, field: RecordField.any) : field)
            for key in [old?.createdKeys[field.record], new?.createdKeys[field.record]] {
                if let key, created.insert(ExactText(key)).inserted {
                    var key = key
                    key.withUTF8 { changes.createdKeys.append(UnsafeRawBufferPointer($0)) }
                }
            }
        }
        changes.normalize()
        return changes
    }

    private static func isSame(_ field: RecordField, _ old: Overlay?, _ new: Overlay?) -> Bool {
        guard let old, let new else { return false }
        if field.field != RecordField.any {
            let key = SplitFieldKey(record: field.record, field: field.field)
            switch (old.splitField(key), new.splitField(key)) {
            case (let left?, let right?): return left.isSame(as: right)
            case (nil, nil): break
            default: return false
            }
        }
        guard let left = old.record(field.record), let right = new.record(field.record) else { return false }
        guard left.isSame(as: right) else { return hasSameValue(of: field, left, right) }
        // The fields of a split record are not in it.
        let isSplit = left.bytes.flatMap { try? RecordView($0) }?.isSplit ?? false
        return !isSplit || field.field != RecordField.any
    }

    /// Whether a field of two records of the same type has the same value; false where that cannot be told.
    private static func hasSameValue(of field: RecordField, _ left: Overlaid, _ right: Overlaid) -> Bool {
        guard field.field != RecordField.any, let left = left.bytes.flatMap({ try? RecordView($0) }),
            let right = right.bytes.flatMap({ try? RecordView($0) }), left.type == right.type, left.flags == right.flags
        else { return false }
        func form(_ record: RecordView) -> [UInt8]? {
            guard let word = record.value(of: field.field) else { return nil }
            var encoder = RecordEncoder()
            let key = SplitFieldKey(record: field.record, field: field.field)
            guard let range = try? encoder.encodeSplitField(key, .stored(word, record.payload), nil) else { return nil }
            return Array(encoder.bytes[range])
        }
        guard let left = form(left) else { return false }
        return left == form(right)
    }
}
