import LarderGraphQL
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
            let changes = try pages.changes(edit.action, generation, transaction)
            guard chain.isPlain else { return try make(changes, of: chain, generation, transaction) }
            for change in changes {
                guard var list = try OpenList(of: change.page.owner, change.page.field, generation, transaction) else {
                    continue
                }
                try list.apply(change.action, generation, transaction)
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
        try set([list.field: .references(list.elements)], of: list.record, list.owner)
    }

    /// Encodes a record with other values of fields that it has.
    private mutating func set(
        _ values: [FieldID: RecordEncoder.Source], of record: RecordView, _ id: RecordID
    ) throws {
        for field in values.keys { changed(id, field) }
        guard record.isSplit else {
            let entries = (0..<record.count).map { index in
                let field = record.field(index)
                return RecordEncoder.Entry(
                    field: field, source: values[field] ?? .stored(record.value(index), record.payload))
            }
            return try rewrite(record, id, entries)
        }
        for (field, value) in values {
            let key = SplitFieldKey(record: id, field: field)
            splitFields.append((key, try encoder.encodeSplitField(key, value, nil)))
        }
    }

    // MARK: Pages

    /// Changes pages whose elements are edges, or on whose length the next one's place depends.
    mutating func make(
        _ pages: [ChainedPages.Change], of chain: PageChain, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        // Pages that are lists themselves are fields of one record.
        var values: [RecordID: [FieldID: RecordEncoder.Source]] = [:]
        for change in pages {
            guard let value = try elements(after: change, of: chain, generation, transaction) else { continue }
            values[change.page.owner, default: [:]][change.page.field] = value
        }
        for (owner, values) in values {
            guard let record = try generation.record(owner, transaction) else { continue }
            try set(values, of: record, owner)
        }
    }

    private mutating func elements(
        after change: ChainedPages.Change, of chain: PageChain, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordEncoder.Source? {
        let page = change.page
        var (elements, parts) = (page.elements, page.parts)
        switch change.action {
        case .remove(let key):
            guard let object = try generation.tables.record(of: key, transaction) else { return nil }
            let places = page.objects.indices.filter { page.objects[$0] == object }
            if chain.numbers != nil {
                // The page is as long as the server made it, so that the next one is where it was.
                guard let type = try generation.record(object, transaction)?.type else { return nil }
                let placeholder = try placeholder(type, generation, transaction)
                for place in places { elements[place] = placeholder }
            } else {
                for place in places.reversed() { elements.remove(at: place) }
                try removeParts(
                    places.map { page.elements[$0] }.filter { parts.contains($0) }, generation, transaction)
            }
        case .insert(let key, _):
            guard let object = try generation.tables.record(of: key, transaction),
                let stored = try generation.record(object, transaction), !stored.isTombstone
            else { return nil }
            var element = object
            if let edge = chain.edge {
                // Where an edge says more than its object, only the server can make it.
                guard let type = edge.type else { return nil }
                element = try newEdge(edge.node, type, object, page, generation, transaction)
                parts.insert(element)
            }
            elements.insert(element, at: change.index)
        }
        return .elements(elements, parts: parts)
    }

    private mutating func newEdge(
        _ node: String, _ type: String, _ object: RecordID, _ page: ChainedPages.Page, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID {
        let id = newRecordID()
        let entry = RecordEncoder.Entry(
            field: try fieldID(node, generation, transaction), source: .reference(object))
        let range = try encoder.encode(
            id, [], type: try fieldID(type, generation, transaction),
            identity: .part(owner: page.owner, field: page.field), entries: [entry], nil)
        records.append((id, range))
        changed(id)
        if numbers == nil {
            if received == nil { received = ReceivedNotes(AnswerAge(), now: generation.now()) }
            received?.note(id)
        }
        return id
    }

    /// An object that is no more, in the place of one that was taken out of a list.
    private mutating func placeholder(
        _ type: FieldID, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID {
        // No server's type has such a name.
        let key = Array("__Removed".utf8)
        if let id = placeholderID { return id }
        let known = try generation.tables.record(of: "__Removed", transaction)
        if let known, try generation.record(known, transaction) != nil { return known }
        return unsafe try key.withUnsafeBytes { key throws in
            let id: RecordID
            if let known {
                unsafe cameBack(key, as: known)
                id = known
            } else {
                id = unsafe created(key)
            }
            let range = unsafe try encoder.encode(
                id, [.entity, .tombstone], type: type, identity: .entity(key: key),
                entries: [RecordEncoder.Entry](), nil)
            records.append((id, range))
            changed(id)
            placeholderID = id
            return id
        }
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
