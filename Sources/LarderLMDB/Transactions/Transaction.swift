/// What read and write transactions have in common: reading one snapshot.
///
/// Bytes that are read live in the map and end with the transaction, or with its next change; the compiler holds
/// callers to that. They are aligned to two bytes only: load integers with `unsafeLoadUnaligned`.
package protocol Transaction: ~Copyable {
    /// The snapshot's number: the last commit it sees; for a write transaction, the commit it will be.
    var id: UInt64 { get }

    /// The value under an integer key; nil where there is none. O(log n).
    @_lifetime(borrow self)
    borrowing func get(_ key: UInt64, in table: Table) throws(LMDBError) -> RawSpan?

    /// The value under a key of bytes; nil where there is none. O(log n).
    @_lifetime(borrow self)
    borrowing func get(_ key: RawSpan, in table: Table) throws(LMDBError) -> RawSpan?

    /// A cursor, not yet on any entry. Cheap: cursors are kept and used again.
    @_lifetime(borrow self)
    borrowing func cursor(in table: Table) throws(LMDBError) -> Cursor

    /// How many entries a table holds. O(1).
    borrowing func entryCount(of table: Table) throws(LMDBError) -> Int
}

extension Transaction where Self: ~Copyable {
    /// The value under a key of bytes; nil where there is none. O(log n).
    @_lifetime(borrow self)
    package borrowing func get(_ key: UnsafeRawBufferPointer, in table: Table) throws(LMDBError) -> RawSpan? {
        try unsafe get(key.bytes, in: table)
    }
}
