internal import LarderLMDB

extension RecordChanges {
    /// Works out a change to a list.
    mutating func edit(
        _ edit: ListEdit, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        guard let owner = try generation.tables.record(of: edit.owner.key, transaction),
            let record = try generation.record(owner, transaction),
            let field = try generation.names.lookUp(edit.field, transaction, generation.tables),
            let value = try generation.value(of: field, in: record, owner, transaction),
            var elements = try value.payload.references(in: value.word)
        else { return }
        switch edit.action {
        case .insert(let key, let place):
            guard let object = try generation.tables.record(of: key, transaction), !elements.contains(object),
                let view = try generation.record(object, transaction), !view.isTombstone
            else { return }
            let index = try index(of: object, for: place, in: elements, generation, transaction)
            elements.insert(object, at: index)
        case .remove(let key):
            guard let object = try generation.tables.record(of: key, transaction), elements.contains(object) else {
                return
            }
            elements.removeAll { $0 == object }
        }
        changed(owner, field)
        if record.isSplit {
            let key = SplitFieldKey(record: owner, field: field)
            splitFields.append((key, try encoder.encodeSplitField(key, .references(elements), nil)))
            return
        }
        let entries = (0..<record.count).map { index in
            let stored = record.field(index)
            return RecordEncoder.Entry(
                field: stored,
                source: stored == field
                    ? .references(elements) : .stored(record.value(index), record.payload))
        }
        try rewrite(record, owner, entries)
    }

    /// Encodes a stored record with other fields.
    mutating func rewrite(_ record: RecordView, _ id: RecordID, _ entries: [RecordEncoder.Entry]) throws {
        let identity: RecordEncoder.Identity =
            if let owner = record.owner {
                .part(owner: owner.record, field: owner.field)
            } else {
                .entity(key: try record.key)
            }
        let range = try encoder.encode(
            id, record.flags, type: record.type, identity: identity, entries: entries, nil)
        records.append((id, range))
    }

    private func index(
        of object: RecordID, for place: ListEdit.Place, in elements: [RecordID?], _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int {
        let (name, isAscending): (String, Bool)
        switch place {
        case .start: return 0
        case .end: return elements.count
        case .ascending(let field): (name, isAscending) = (field, true)
        case .descending(let field): (name, isAscending) = (field, false)
        }
        guard let field = try generation.names.lookUp(name, transaction, generation.tables),
            let own = try generation.orderedValue(of: field, in: object, transaction)
        else { return elements.count }
        for (index, element) in elements.enumerated() {
            guard let element, let other = try generation.orderedValue(of: field, in: element, transaction) else {
                continue
            }
            if isAscending ? own.isLess(than: other) : other.isLess(than: own) { return index }
        }
        return elements.count
    }
}

/// A value by which objects are put in order.
private enum OrderedValue {
    case int(Int64)
    case float(Double)
    case text([UInt8])

    /// False also where the values are of different kinds.
    func isLess(than other: OrderedValue) -> Bool {
        switch (self, other) {
        case (.int(let left), .int(let right)): left < right
        case (.int(let left), .float(let right)): Double(left) < right
        case (.float(let left), .int(let right)): left < Double(right)
        case (.float(let left), .float(let right)): left < right
        case (.text(let left), .text(let right)): left.lexicographicallyPrecedes(right)
        default: false
        }
    }
}

extension Generation {
    /// The value of a field as it is stored; nil where the record does not have it.
    func value(
        of field: FieldID, in record: RecordView, _ id: RecordID,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (word: ValueWord, payload: PayloadView)? {
        guard record.isSplit else { return record.value(of: field).map { ($0, record.payload) } }
        return try splitField(SplitFieldKey(record: id, field: field), transaction).map { ($0.word, $0) }
    }

    fileprivate func orderedValue(
        of field: FieldID, in id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> OrderedValue? {
        let found = try record(id, transaction)
        try transaction.demand?.note(met: found?.bytes, isInOverlay: transaction.overlay?.record(id) != nil)
        guard let record = found,
            let (word, payload) = try value(of: field, in: record, id, transaction)
        else { return nil }
        switch word.tag {
        case .smallInt: return .int(word.smallInt)
        case .int: return .int(Int64(bitPattern: try payload.eightBytes(word)))
        case .float: return .float(Double(bitPattern: try payload.eightBytes(word)))
        case .string: return .text(Array(try payload.text(word)))
        case .farString:
            var heap = TextHeap()
            return .text(Array(try heap.text(at: payload.place(word), transaction, tables)))
        default: return nil
        }
    }
}

extension PayloadView {
    /// The elements of a list of references, nil for a null among them; nil where the value is anything else.
    fileprivate func references(in word: ValueWord) throws(DamagedRecord) -> [RecordID?]? {
        guard word.tag == .list else { return nil }
        let list = try list(word)
        var elements: [RecordID?] = []
        elements.reserveCapacity(list.count)
        for index in 0..<list.count {
            switch list[index].tag {
            case .null: elements.append(nil)
            case .reference, .wideReference: elements.append(try record(list[index]))
            default: return nil
            }
        }
        return elements
    }
}
