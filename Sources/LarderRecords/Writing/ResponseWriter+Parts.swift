internal import LarderLMDB

/// Objects without identity: where the record of each comes from, and which go.
extension ResponseWriter {
    struct Holder {
        /// In `staged`.
        var record: Int
        var field: FieldID
    }

    /// Notes for each part in a field's value where its record comes from.
    ///
    /// A single part that is of the same type stays and takes in the new fields. A part in a list keeps its record for
    /// the place alone, and nothing of what stood there: the list may have moved. The recursion is as deep as the
    /// field's type has lists.
    mutating func originate(
        _ cell: ParsedCell, _ holder: Holder, stored: (word: ValueWord, payload: PayloadView)?, earlier: ParsedCell?,
        inList: Bool
    ) throws {
        switch cell.kind {
        case .object:
            let object = cell.offset
            guard parsed.objects[object].keyCount == 0 else { return }
            let owner = RecordField(record: staged[holder.record].id, field: holder.field)
            if let earlier, earlier.kind == .object, parsed.objects[earlier.offset].keyCount == 0,
                parsed.objects[earlier.offset].type == parsed.objects[object].type
            {
                join(object, earlier.offset)
            } else if let stored, stored.word.tag == .part || stored.word.tag == .widePart {
                origins[object] = .existing(
                    try stored.payload.record(stored.word), owner: owner,
                    isReplaced: inList || staged[holder.record].isReplaced)
            } else {
                origins[object] = .new(owner: owner)
            }
        case .list:
            let list = try stored.flatMap { stored in
                stored.word.tag == .list ? try stored.payload.list(stored.word) : nil
            }
            for index in 0..<Int(cell.count) {
                var before: (word: ValueWord, payload: PayloadView)?
                if let list, let stored, index < list.count { before = (list[index], stored.payload) }
                // The same field of the same object twice in one response is the same list.
                let twin = earlier.flatMap { earlier in
                    earlier.kind == .list && earlier.count == cell.count ? parsed.items[earlier.offset + index] : nil
                }
                try originate(parsed.items[cell.offset + index], holder, stored: before, earlier: twin, inList: true)
            }
        default: return
        }
    }

    // MARK: Parts that come twice

    /// The first object in the text that stands for the same part.
    func firstOccurrence(of object: Int) -> Int {
        var first = object
        while case .same(let other) = origins[first] { first = other }
        return first
    }

    /// Makes one part of an object whose origin is not known yet and one whose origin is. Either may come first in
    /// the text: an entity can be met again before its own parts. The first gives the record.
    private mutating func join(_ object: Int, _ known: Int) {
        let first = firstOccurrence(of: known)
        if first < object {
            origins[object] = .same(object: first)
        } else {
            origins[object] = origins[first]
            origins[first] = .same(object: object)
        }
    }

    /// Forgets the parts of a field's value that the response has replaced by another value of the same field, so that
    /// no record is made that nothing holds. The recursion is as deep as the plan.
    mutating func abandonParts(of cell: ParsedCell, unlessIn replacement: ParsedCell?) {
        var kept: Set<Int> = []
        if let replacement { for object in parts(in: replacement) { kept.insert(firstOccurrence(of: object)) } }
        for object in parts(in: cell) {
            let first = firstOccurrence(of: object)
            if kept.contains(first) { continue }
            if case .unstored = origins[first] { continue }
            origins[first] = .unstored
            guard places[first] >= 0 else { continue }
            let record = Int(places[first])
            staged[record].isAbandoned = true
            gather(record)
            var field = staged[record].firstField
            while field >= 0 {
                abandonParts(of: fields[field].cell, unlessIn: nil)
                field = Int(fields[field].next)
            }
        }
    }

    /// The objects without identity that a value holds, in lists as well.
    private func parts(in cell: ParsedCell) -> [Int] {
        switch cell.kind {
        case .object: parsed.objects[cell.offset].keyCount == 0 ? [cell.offset] : []
        case .list: (0..<Int(cell.count)).flatMap { parts(in: parsed.items[cell.offset + $0]) }
        default: []
        }
    }

    // MARK: Parts that go

    /// Notes the parts of a value that the new value of its field does not keep.
    mutating func dropParts(
        of word: ValueWord, _ payload: PayloadView, keeping cell: ParsedCell?, _ values: ParsedValues
    ) throws {
        let parts = try payload.parts(in: word)
        guard !parts.isEmpty else { return }
        let kept = Set(cell.map { values.parts(in: $0) } ?? [])
        orphans += parts.filter { !kept.contains($0) }
    }
}
