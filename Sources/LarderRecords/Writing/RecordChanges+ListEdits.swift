import LarderLMDB

/// Safe: a record's key is copied into the encoder before anything is written over it; an overlay encodes an open list
/// before it lets anything look at the list's record.
extension RecordChanges {
    /// Works out a change to a list.
    mutating func edit(
        _ edit: ListEdit, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        guard let owner = try generation.tables.record(of: edit.owner.key, transaction) else { return }
        if let chain = edit.pages {
            let pages = try ChainedPages(chain, of: owner, generation, transaction)
            for (page, action) in try pages.edits(edit.action, generation, transaction) {
                guard var list = try OpenList(of: page.owner, page.field, generation, transaction) else { continue }
                try list.apply(action, generation, transaction)
                if list.isChanged { try close(list) }
            }
            return
        }
        guard let field = try generation.names.lookUp(edit.field, transaction, generation.tables),
            var list = try OpenList(of: owner, field, generation, transaction)
        else { return }
        try list.apply(edit.action, generation, transaction)
        if list.isChanged { try close(list) }
    }

    /// Takes in a list that was edited.
    mutating func close(_ list: OpenList) throws {
        let record = list.record
        changed(list.owner, list.field)
        if record.isSplit {
            let key = SplitFieldKey(record: list.owner, field: list.field)
            splitFields.append((key, try encoder.encodeSplitField(key, .references(list.elements), nil)))
            return
        }
        let entries = (0..<record.count).map { index in
            let stored = record.field(index)
            return RecordEncoder.Entry(
                field: stored,
                source: stored == list.field
                    ? .references(list.elements) : .stored(record.value(index), record.payload))
        }
        try rewrite(record, list.owner, entries)
    }

    /// Encodes a stored record with other fields.
    mutating func rewrite(_ record: RecordView, _ id: RecordID, _ entries: [RecordEncoder.Entry]) throws {
        let identity: RecordEncoder.Identity =
            if let owner = record.owner {
                .part(owner: owner.record, field: owner.field)
            } else {
                unsafe .entity(key: try record.key)
            }
        let range = try encoder.encode(
            id, record.flags, type: record.type, identity: identity, entries: entries, nil)
        records.append((id, range))
    }
}
