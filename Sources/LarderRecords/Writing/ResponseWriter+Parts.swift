import LarderGraphQL
import LarderLMDB

/// Objects without identity: where the record of each comes from, and which go.
extension ResponseWriter {
    struct Holder {
        /// In `staged`.
        var record: Int
        var field: FieldID
        /// What the schema says of the field's part.
        var parts: PartPolicy?

        var place: PartPlace { PartPlace(holder: Int32(truncatingIfNeeded: record), field: field) }
    }

    /// Notes for each part in a field's value where its record comes from.
    ///
    /// A single part stays and takes in the new fields while nothing contradicts. A part in a list keeps its record for
    /// the place alone, and nothing of what stood there: the list may have moved. The recursion is as deep as the
    /// field's type has lists.
    mutating func originate(
        _ cell: ParsedCell, _ holder: Holder, stored: (word: ValueWord, payload: PayloadView)?, earlier: ParsedCell?,
        inList: Bool, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        switch cell.kind {
        case .object:
            let object = cell.offset
            guard parsed.isPart(object) else { return }
            let origin = try origin(of: object, holder, stored, inList: inList, transaction)
            if let earlier, earlier.kind == .object, parsed.isPart(earlier.offset),
                try isSame(object, earlier.offset, holder, transaction)
            {
                join(object, origin, earlier.offset)
            } else {
                origins[object] = origin
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
                try originate(
                    parsed.items[cell.offset + index], holder, stored: before, earlier: twin, inList: true, transaction)
            }
        default: return
        }
    }

    private mutating func origin(
        of object: Int, _ holder: Holder, _ stored: (word: ValueWord, payload: PayloadView)?, inList: Bool,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> PartOrigin {
        let record = staged[holder.record]
        guard let stored, stored.word.tag == .part || stored.word.tag == .widePart else { return .new(holder.place) }
        let id = try stored.payload.record(stored.word)
        let policy = policy(of: object, holder)
        let isReplaced =
            if inList || record.isReplaced {
                true
            } else if let policy {
                policy == .replace
            } else {
                // What was compared with the part that holds it need not be once more.
                try !record.isCompared && contradicts(object, stored: id, transaction)
            }
        storedParts.append(
            StoredPart(
                id: id, place: holder.place, isReplaced: isReplaced, isCompared: policy == nil && !inList))
        return .existing(Int32(truncatingIfNeeded: storedParts.count - 1))
    }

    private func policy(of object: Int, _ holder: Holder) -> PartPolicy? {
        holder.parts ?? layout.cases[Int(parsed.objects[object].caseIndex)].parts ?? (isEdited ? .merge : nil)
    }

    /// Replaces the stored parts of every part that is replaced: a later object of the same part may have been the one
    /// that contradicted.
    mutating func replacePartsOfReplaced() {
        // A part is staged after the record that holds it.
        for index in staged.indices where staged[index].holder >= 0 && staged[staged[index].holder].isReplaced {
            staged[index].isReplaced = true
        }
    }

    // MARK: Parts that come twice

    /// Whether an object stands for the same part as one that the response has for the same field: nothing in it
    /// contradicts that one, or what was joined with it before.
    private mutating func isSame(
        _ object: Int, _ other: Int, _ holder: Holder, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        guard parsed.objects[object].type == parsed.objects[other].type else { return false }
        if policy(of: object, holder) == .merge { return true }
        let first = firstOccurrence(of: other)
        for known in [first] + (twins[first] ?? []) {
            if try contradicts(object, twin: known, transaction) { return false }
        }
        return true
    }

    /// The first object in the text that stands for the same part.
    func firstOccurrence(of object: Int) -> Int {
        var first = object
        while case .same(let other) = origins[first] { first = Int(other) }
        return first
    }

    /// Makes one part of an object whose origin is not known yet and one whose origin is. Either may come first in
    /// the text: an entity can be met again before its own parts. The first gives the record.
    ///
    /// - Parameter origin: What the object's would be by itself. Where it contradicts what is stored, both do.
    private mutating func join(_ object: Int, _ origin: PartOrigin, _ known: Int) {
        let first = firstOccurrence(of: known)
        if case .existing(let part) = origins[first], case .existing(let own) = origin,
            storedParts[Int(own)].isReplaced
        {
            storedParts[Int(part)].isReplaced = true
            if places[first] >= 0 { staged[Int(places[first])].isReplaced = true }
        }
        var others = twins.removeValue(forKey: first) ?? []
        if first < object {
            origins[object] = .same(object: Int32(truncatingIfNeeded: first))
            remember(object, among: &others, of: first)
            twins[first] = others
        } else {
            origins[object] = origins[first]
            origins[first] = .same(object: Int32(truncatingIfNeeded: object))
            remember(first, among: &others, of: object)
            twins[object] = others
        }
    }

    /// Takes in an object of a part that comes more than once, unless one of its case is known: they say the same.
    private func remember(_ object: Int, among others: inout [Int], of first: Int) {
        let known = parsed.objects[object].caseIndex
        guard others.count < Self.mostTwins, parsed.objects[first].caseIndex != known,
            !others.contains(where: { parsed.objects[$0].caseIndex == known })
        else { return }
        others.append(object)
    }

    /// With so many others of one part each further one is compared: a response may have any number.
    private static var mostTwins: Int { 16 }

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
        case .object: parsed.isPart(cell.offset) ? [cell.offset] : []
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
