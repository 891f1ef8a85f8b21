/// The lists of an overlay that is being built: an edit changes them where they are, and they are encoded once, when
/// something looks at their owners.
struct OpenLists {
    /// By owner: looking at a record to take one list out closes the other.
    private var lists: [RecordID: OpenList] = [:]
    /// Why a list could not be encoded.
    fileprivate(set) var failure: (any Error)?

    fileprivate mutating func take(of owner: RecordID) -> OpenList? {
        lists.isEmpty ? nil : lists.removeValue(forKey: owner)
    }

    fileprivate mutating func put(_ list: OpenList) { lists[list.owner] = list }

    fileprivate var owners: [RecordID] { Array(lists.keys) }

    /// Objects that became different may belong elsewhere.
    mutating func forgetOrders(of changes: RecordChanges) {
        guard !lists.isEmpty else { return }
        for owner in lists.keys {
            lists[owner]?.forgetOrder { members in
                changes.records.contains { members.contains($0.id) }
                    || changes.splitFields.contains { members.contains($0.key.record) }
                    || changes.removedSplitFields.contains { members.contains($0.record) }
                    || changes.removedRecords.contains { members.contains($0) }
            }
        }
    }
}

extension Overlay {
    /// Edits a list over what is in here so far.
    ///
    /// - Parameter blank: Changes without anything in them, for what no open list can take in.
    func edit(_ edit: ListEdit, _ blank: @autoclosure () -> RecordChanges, _ snapshot: borrowing LayeredSnapshot) throws
    {
        guard let owner = try generation.tables.record(of: edit.owner.key, snapshot) else { return }
        if let chain = edit.pages {
            let pages = try ChainedPages(chain, of: owner, generation, snapshot)
            let changed = try pages.changes(edit.action, generation, snapshot)
            guard chain.isPlain else {
                var changes = blank()
                try changes.make(changed, of: chain, generation, snapshot)
                return lay(changes)
            }
            for change in changed { try apply(change.action, to: change.page.field, of: change.page.owner, snapshot) }
        } else if let field = try generation.names.lookUp(edit.field, snapshot, generation.tables) {
            try apply(edit.action, to: field, of: owner, snapshot)
        }
    }

    private func apply(
        _ action: ListEdit.Action, to field: FieldID, of owner: RecordID, _ snapshot: borrowing LayeredSnapshot
    ) throws {
        // Not in here while it is changed: what is looked at meanwhile is the same with and without the change. Nor is
        // it anywhere else, where it would be copied.
        var list = openLists.take(of: owner)
        if list?.field != field, let other = list.take() {
            openLists.put(other)
            closeLists(of: owner)
        }
        if list == nil { list = try OpenList(of: owner, field, generation, snapshot) }
        defer { if let list { openLists.put(list) } }
        try list?.apply(action, generation, snapshot)
    }

    /// Encodes the list of a record that is open.
    func closeLists(of owner: RecordID) {
        guard let list = openLists.take(of: owner), list.isChanged else { return }
        do {
            var changes = RecordChanges(basis.state)
            try changes.close(list)
            lay(changes)
        } catch { openLists.failure = error }
    }

    /// Encodes all lists that are open.
    func closeLists() throws {
        for owner in openLists.owners { closeLists(of: owner) }
        if let failure = openLists.failure { throw failure }
    }
}
