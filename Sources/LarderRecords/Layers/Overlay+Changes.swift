import LarderGraphQL
import LarderLMDB

/// Safe: stored bytes are read within the closure that lends them, before the cursor goes on; the overlays that are
/// compared are kept by the call, and so are their bytes.
extension Overlay {
    /// Whether the overlay is what the layers come to over a newer snapshot too: nothing that was read for it has
    /// become different, and none of its mutations has become known.
    ///
    /// - Parameters:
    ///   - earlier: The counters of a snapshot for which it is right.
    ///   - index: Of the layers whose indices it has.
    /// - Returns: The newer snapshot's counters; nil where it has to be worked out anew.
    /// - Complexity: O(n) in what was changed since, and in the layers or the mutations that are known, whichever are
    ///   fewer; where names were given numbers, also in the names that the overlay missed.
    func isRight(
        for transaction: borrowing ReadTransaction, after earlier: GenerationState, _ index: LayerIndex
    ) throws -> GenerationState? {
        let tables = generation.tables
        let state = try GenerationState.stored(transaction, tables)
        guard state.epoch == earlier.epoch, state.lastChange >= earlier.lastChange,
            earlier.lastChange + 1 >= state.firstChange
        else { return nil }
        guard try knowsOf(transaction, index) else { return nil }
        if state.nextField != earlier.nextField {
            var isAbsent = true
            try basis.absentNames.forEach { (name, _) throws in
                if isAbsent { isAbsent = try generation.names.number(of: name.text, transaction, tables) == nil }
            }
            guard isAbsent else { return nil }
        }
        guard try !hasMissedKeys(of: earlier.nextRecord..<state.nextRecord, transaction) else { return nil }
        guard state.lastChange > earlier.lastChange else { return state }
        var cursor = try transaction.cursor(in: tables.changes)
        var entry = try cursor.seek(atLeast: earlier.lastChange + 1)
        while let current = entry {
            let set = unsafe try current.value.withUnsafeBytes { bytes throws(RecordError) in
                guard let text = unsafe SealedText.text(bytes) else { throw ChangeSet.damaged }
                return unsafe try ChangeSet(encoded: text)
            }
            if set.isEverything || set.fields.contains(where: { basis.records.contains($0.record) }) { return nil }
            entry = try cursor.next()
        }
        return state
    }

    /// Whether a snapshot knows of the same mutations as when the layers were laid.
    private func knowsOf(_ transaction: borrowing ReadTransaction, _ index: LayerIndex) throws -> Bool {
        guard let table = generation.tables.applied else { return appliedLayers.count == 0 }
        guard try !index.hasLongKeys && transaction.entryCount(of: table) < order.count else {
            for place in 0..<order.count {
                let (layer, wasApplied) = order[place]
                let entry = try generation.tables.applied(index.layers[layer].key.text, transaction)
                guard (entry != nil) == wasApplied else { return false }
            }
            return true
        }
        var found = 0
        var cursor = try transaction.cursor(in: table)
        while let entry = try cursor.next() {
            guard let layer = unsafe entry.key.withUnsafeBytes({ unsafe index.layer(ofMutation: $0) }),
                laid.contains(layer)
            else {
                continue
            }
            guard appliedLayers.contains(layer) else { return false }
            found += 1
        }
        return found == appliedLayers.count
    }

    /// Whether one of these records has a key that the snapshot did not have when the layers were laid.
    private func hasMissedKeys(of records: Range<RecordID>, _ transaction: borrowing ReadTransaction) throws -> Bool {
        guard !records.isEmpty, !basis.absentKeys.isEmpty else { return false }
        if records.count < basis.absentKeys.count {
            var isComplete = true
            for id in records {
                guard let stored = try transaction.get(id, in: generation.tables.records) else {
                    // It went again, and its key still has the number.
                    isComplete = false
                    break
                }
                let isMissed = unsafe try stored.withUnsafeBytes { bytes in
                    let key = unsafe try RecordView(bytes).key
                    return unsafe !key.isEmpty && basis.absentKeys.contains(key)
                }
                if isMissed { return true }
            }
            if isComplete { return false }
        }
        var isMissed = false
        try basis.absentKeys.forEach { (key, _) throws in
            if !isMissed { isMissed = try generation.tables.record(of: key.text, transaction) != nil }
        }
        return isMissed
    }

    /// What is different in answers under one overlay and under another, as far as the overlays make the difference.
    ///
    /// May name more than is different: what both have changed, and not in the same way. It also names a field that only
    /// one of them has changed, even if its value is the same: whether an answer is optimistic depends on it.
    ///
    /// - Complexity: O(n) in what one of them touches; where one goes on from the other, in what was laid between.
    static func difference(_ old: Overlay?, _ new: Overlay?) -> ChangeSet {
        var changes = ChangeSet()
        var seen: Set<RecordField> = []
        var created: Set<ExactText> = []
        let none = SharedMap<RecordField, Void>()
        (old?.touched ?? none).forEachUnshared(with: new?.touched ?? none) { field in
            guard seen.insert(field).inserted, !isSame(field, old, new) else { return }
            // A name that only layers know has another number in the store.
            let isOfLayers = field.field >= OverlayNumbers.firstField
            changes.fields.append(isOfLayers ? RecordField(record: field.record, field: RecordField.any) : field)
            for key in [old?.createdKeys[field.record], new?.createdKeys[field.record]] {
                if let key, created.insert(ExactText(key)).inserted {
                    var key = key
                    key.withUTF8 { unsafe changes.createdKeys.append(UnsafeRawBufferPointer($0)) }
                }
            }
        }
        changes.normalize()
        return changes
    }

    private static func isSame(_ field: RecordField, _ old: Overlay?, _ new: Overlay?) -> Bool {
        guard let old, let new, old.touched.contains(field), new.touched.contains(field) else { return false }
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
        let isSplit = unsafe left.bytes.flatMap { unsafe try? RecordView($0) }?.isSplit ?? false
        return !isSplit || field.field != RecordField.any
    }

    /// Whether a field of two records of the same type has the same value; false where that cannot be told.
    private static func hasSameValue(of field: RecordField, _ left: Overlaid, _ right: Overlaid) -> Bool {
        guard field.field != RecordField.any, let left = unsafe left.bytes.flatMap({ unsafe try? RecordView($0) }),
            let right = unsafe right.bytes.flatMap({ unsafe try? RecordView($0) }), left.type == right.type,
            left.flags == right.flags
        else { return false }
        func form(_ record: RecordView) -> [UInt8]? {
            guard let word = record.value(of: field.field) else { return nil }
            var encoder = RecordEncoder()
            // The encoder is kept until its bytes have been copied.
            defer { withExtendedLifetime(encoder) {} }
            let key = SplitFieldKey(record: field.record, field: field.field)
            guard let range = try? encoder.encodeSplitField(key, .stored(word, record.payload), nil) else { return nil }
            return unsafe Array(encoder.bytes[range])
        }
        guard let left = form(left) else { return false }
        return left == form(right)
    }
}
