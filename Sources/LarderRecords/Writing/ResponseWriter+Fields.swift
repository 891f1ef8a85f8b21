internal import LarderLMDB

/// Fields: what the response has of each record, the same field of the same record once.
extension ResponseWriter {
    /// A record of more fields than this has an index of them once it is met again.
    private static var chainLimit: Int { 32 }

    mutating func stageFields(
        of object: Int, in record: Int, _ transaction: borrowing some Transaction & ~Copyable
    ) throws {
        meetAgain(record)
        let (start, count) = (Int(parsed.objects[object].fieldStart), Int(parsed.objects[object].fieldCount))
        for index in start..<start + count {
            if !parsed.unanswered.isEmpty, parsed.unanswered.contains(index) { continue }
            let cell = parsed.fields[index].cell
            let field = Int(parsed.fields[index].field)
            guard layout.fields[field].key >= 0 else { continue }
            let isObject = layout.fields[field].content == .object
            let (id, key) = try fieldID(Int(layout.fields[field].key), transaction)
            let earlier = stagedField(id, key, of: record)
            if isObject {
                let stored = try storedValue(of: id, in: staged[record], transaction)
                try originate(
                    cell, Holder(record: record, field: id), stored: stored,
                    earlier: earlier.map { fields[$0].cell }, inList: false)
            }
            if let earlier {
                if isObject { abandonParts(of: fields[earlier].cell, unlessIn: cell) }
                fields[earlier].cell = cell
            } else {
                append(StagedField(id: id, key: key, cell: cell), to: record)
            }
        }
    }

    /// The number of a field by its key in the plan, and the first key that is the same field: arguments can make the
    /// same of two.
    @inline(__always)
    private mutating func fieldID(
        _ key: Int, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> (id: FieldID, first: Int32) {
        if keyIDs[key].id == 0 {
            let id = try changes.fieldID(operation.binding.fieldKeys[key], generation, transaction)
            let first = firstKeys[id] ?? Int32(truncatingIfNeeded: key)
            firstKeys[id] = first
            keyIDs[key] = (id, first)
        }
        return keyIDs[key]
    }

    /// Makes the fields that a record has so far be found again, which other records' fields may have covered.
    private mutating func meetAgain(_ record: Int) {
        let isMany = staged[record].fieldCount > Self.chainLimit
        if staged[record].isIndexed { return }
        var field = staged[record].firstField
        while field >= 0 {
            let place = StagedPlace(record: record, field: field)
            if isMany {
                fieldIndex[StagedPlace(record: record, field: Int(fields[field].id))] = field
            } else {
                lastStaged[Int(fields[field].key)] = place
            }
            field = Int(fields[field].next)
        }
        staged[record].isIndexed = isMany
    }

    @inline(__always)
    private func stagedField(_ id: FieldID, _ key: Int32, of record: Int) -> Int? {
        if staged[record].isIndexed { return fieldIndex[StagedPlace(record: record, field: Int(id))] }
        let last = lastStaged[Int(key)]
        return last.record == record ? last.field : nil
    }

    @inline(__always)
    private mutating func append(_ field: StagedField, to record: Int) {
        let index = fields.count
        fields.append(field)
        let last = staged[record].lastField
        if last >= 0 { fields[last].next = Int32(truncatingIfNeeded: index) } else { staged[record].firstField = index }
        staged[record].lastField = index
        staged[record].fieldCount += 1
        lastStaged[Int(field.key)] = StagedPlace(record: record, field: index)
        if staged[record].isIndexed { fieldIndex[StagedPlace(record: record, field: Int(field.id))] = index }
    }
}
