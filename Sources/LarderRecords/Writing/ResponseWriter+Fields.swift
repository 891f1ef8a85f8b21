import LarderLMDB

/// Fields: what the response has of each record, the same field of the same record once.
extension ResponseWriter {
    /// A record of more fields than this has an index of them once it is met again.
    private static var chainLimit: Int { 32 }

    /// Takes in the fields of an object. As long as one object has all fields of its record, which is so of nearly all,
    /// they stay where they were parsed; others are brought together in `fields`.
    mutating func stageFields(
        of object: Int, in record: Int, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        if layout.hasVersions {
            staged[record].isDeleted = isDeleted(object)
            if staged[record].isDeleted { return try stageDeletion(of: record) }
        }
        guard staged[record].object == object else {
            if replaces(object, in: record) {
                staged[record].source = object
                return
            }
            return try joinFields(of: object, in: record, transaction)
        }
        for index in parsed.objects[object].fields where isStored(index) {
            let field = layout.fields[Int(parsed.fields[index].field)]
            let (id, key) = try fieldID(Int(field.key), transaction)
            // Two of the plan's fields are the same one.
            if lastMet[Int(key)] == record { return try joinFields(of: object, in: record, transaction) }
            lastMet[Int(key)] = record
            guard field.content == .object else { continue }
            let stored = try storedValue(of: id, in: staged[record], transaction)
            try originate(
                parsed.fields[index].cell, Holder(record: record, field: id, parts: field.parts), stored: stored,
                earlier: nil, inList: false, transaction)
        }
        staged[record].isWhole = true
    }

    /// Takes in the fields of an object whose record has fields already, or that has a field twice: what comes later
    /// replaces what came earlier.
    private mutating func joinFields(
        of object: Int, in record: Int, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        meetAgain(record)
        for index in parsed.objects[object].fields where isStored(index) {
            let cell = parsed.fields[index].cell
            let field = layout.fields[Int(parsed.fields[index].field)]
            let isObject = field.content == .object
            let (id, key) = try fieldID(Int(field.key), transaction)
            let earlier = stagedField(id, key, of: record)
            if isObject {
                let stored = try storedValue(of: id, in: staged[record], transaction)
                try originate(
                    cell, Holder(record: record, field: id, parts: field.parts), stored: stored,
                    earlier: earlier.map { fields[$0].cell }, inList: false, transaction)
            }
            if let earlier {
                if isObject { abandonParts(of: fields[earlier].cell, unlessIn: cell) }
                fields[earlier].cell = cell
            } else {
                append(StagedField(id: id, key: key, cell: cell), to: record)
            }
        }
    }

    /// Whether an object has all fields that its record has so far, and no parts: nothing is left of what came earlier.
    private func replaces(_ object: Int, in record: Int) -> Bool {
        guard staged[record].isWhole, parsed.unanswered.isEmpty else { return false }
        let (new, old) = (parsed.objects[object], parsed.objects[staged[record].source])
        let planned = layout.cases[Int(new.caseIndex)]
        return new.caseIndex == old.caseIndex && planned.hasOnlyLeaves && new.fieldCount == planned.fieldCount
    }

    /// Whether a field of the response, by its index, is one that the cache keeps.
    @inline(__always)
    func isStored(_ index: Int) -> Bool {
        layout.fields[Int(parsed.fields[index].field)].key >= 0
            && (parsed.unanswered.isEmpty || !parsed.unanswered.contains(index))
    }

    /// Appends the fields of an object to `fields` as they stand in the response.
    mutating func appendParsedFields(of object: Int) {
        for index in parsed.objects[object].fields where isStored(index) {
            let (id, key) = keyIDs[Int(layout.fields[Int(parsed.fields[index].field)].key)]
            fields.append(StagedField(id: id, key: key, cell: parsed.fields[index].cell))
        }
    }

    /// Brings the fields of a record that stayed where they were parsed into `fields`.
    mutating func gather(_ record: Int) {
        guard staged[record].isWhole else { return }
        staged[record].isWhole = false
        let first = fields.count
        appendParsedFields(of: staged[record].source)
        guard first < fields.count else { return }
        for index in first..<fields.count - 1 { fields[index].next = Int32(truncatingIfNeeded: index + 1) }
        staged[record].firstField = first
        staged[record].lastField = fields.count - 1
        staged[record].fieldCount = fields.count - first
    }

    /// The number of a field by its key in the plan, and the first key that is the same field: arguments can make the
    /// same of two.
    @inline(__always)
    mutating func fieldID(
        _ key: Int, _ transaction: borrowing some RecordSnapshot & ~Copyable
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
        gather(record)
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
