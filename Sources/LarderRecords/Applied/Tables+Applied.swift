import LarderLMDB

/// Safe: entries are read, and copied from what is stored, while the transaction lends it.
extension Tables {
    /// What is known of a mutation; nil where nothing is.
    func applied(
        _ key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> AppliedEntry? {
        guard let applied else { return nil }
        var key = key
        return try key.withUTF8 { text throws in
            unsafe try StoredKey.with(UnsafeRawBufferPointer(text)) { stored throws in
                guard unsafe !stored.isEmpty, let value = unsafe try transaction.get(stored, in: applied) else {
                    return nil
                }
                guard let entry = unsafe value.withUnsafeBytes({ unsafe AppliedEntry($0, under: stored) }) else {
                    throw RecordError(.damaged, "The note of a mutation is damaged; remove the cache and fetch again")
                }
                return entry
            }
        }
    }

    /// Everything that is known of mutations, in the order of their keys.
    func allApplied(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws -> [AppliedEntry] {
        guard let applied else { return [] }
        var found: [AppliedEntry] = []
        var cursor = try transaction.cursor(in: applied)
        while let entry = try cursor.next() {
            let read = unsafe entry.value.withUnsafeBytes { value in
                unsafe entry.key.withUnsafeBytes { unsafe AppliedEntry(value, under: $0) }
            }
            guard let read else {
                throw RecordError(.damaged, "The note of a mutation is damaged; remove the cache and fetch again")
            }
            found.append(read)
        }
        return found
    }
}

extension RecordChanges {
    /// Notes something of a mutation, unless something is known of it: then that is kept as `earlier`.
    mutating func note(
        _ key: AppliedKey, _ kind: AppliedEntry.Kind, _ time: Int64, _ generation: Generation,
        _ transaction: borrowing WriteTransaction
    ) throws {
        earlier = try generation.tables.applied(key.text, transaction)
        if earlier == nil { applied.append(AppliedEntry(key: key.text, kind: kind, time: time)) }
    }

    func storeApplied(_ tables: Tables, _ transaction: inout WriteTransaction) throws {
        guard !applied.isEmpty || !forgotten.isEmpty else { return }
        // Whatever is open for writing has the table.
        guard let table = tables.applied else { throw RecordError.damagedState }
        for entry in applied {
            // Safe: `put` copies what the arrays lend it.
            unsafe try StoredKey.bytes(Array(entry.key.utf8)).withUnsafeBytes { key throws in
                unsafe try entry.encoded(under: key).withUnsafeBytes { unsafe try transaction.put(key, $0, in: table) }
            }
        }
        for key in forgotten where !key.isEmpty {
            try transaction.delete(StoredKey.bytes(Array(key.utf8)).rawSpan, in: table)
        }
    }
}
