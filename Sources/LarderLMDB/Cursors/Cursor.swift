import CLMDB

/// A place in a table, for reading entries in order or many by key.
///
/// Lives inside a transaction, which cannot change while a cursor on it exists.
///
/// Safe: it owns LMDB's cursor, or has it from a slot that nothing else uses meanwhile, and the bytes that it answers
/// cannot escape it.
@safe package struct Cursor: ~Copyable, ~Escapable {
    private let pointer: OpaquePointer
    private let table: Table
    /// Where the cursor goes back to; nil for a write transaction, whose cursors are closed.
    private let slot: ReaderSlot?
    /// The key under the cursor in a table with integer keys, as far as it is known.
    private var current: UInt64 = 0
    private var isCurrentKnown = false

    @_lifetime(borrow owner)
    init<Owner: Transaction & ~Copyable>(
        _ pointer: OpaquePointer, table: Table, keptIn slot: ReaderSlot? = nil, of owner: borrowing Owner
    ) {
        unsafe self.pointer = unsafe pointer
        self.table = table
        self.slot = slot
    }

    deinit {
        if let slot { unsafe slot.keep(pointer, for: table) } else { unsafe mdb_cursor_close(pointer) }
    }

    /// The value under exactly this key; nil where there is none.
    ///
    /// Costs a step, not a search, where the key is the current one or follows it: ask in ascending order.
    @_lifetime(copy self)
    package mutating func value(at key: UInt64) throws(LMDBError) -> RawSpan? {
        guard table.keys == .integers else { throw .keyKind(table) }
        var name = unsafe MDB_val()
        var value = unsafe MDB_val()
        let status: Int32
        if isCurrentKnown, key &- current <= 1 {
            status = unsafe mdb_cursor_get(pointer, &name, &value, key == current ? MDB_GET_CURRENT : MDB_NEXT)
            if status == MDB_SUCCESS {
                // A step can land past the key, which is then absent.
                current = unsafe UnsafeRawBufferPointer(name).integerKey
                guard current == key else { return nil }
            }
        } else {
            var wanted = key
            status = unsafe withUnsafeMutableBytes(of: &wanted) { bytes in
                unsafe name = unsafe MDB_val(mv_size: 8, mv_data: bytes.baseAddress)
                return unsafe mdb_cursor_get(pointer, &name, &value, MDB_SET)
            }
            current = key
        }
        isCurrentKnown = status == MDB_SUCCESS
        guard isCurrentKnown else {
            if status == MDB_NOTFOUND { return nil }
            throw .make(status, doing: "reading through a cursor")
        }
        return unsafe _overrideLifetime(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(value)), copying: self)
    }

    /// The value under exactly this key; nil where there is none.
    @_lifetime(copy self)
    package mutating func value(at key: UnsafeRawBufferPointer) throws(LMDBError) -> RawSpan? {
        guard table.keys == .bytes else { throw .keyKind(table) }
        guard key.count > 0 else { throw .emptyKey }
        var name = unsafe MDB_val(key)
        var value = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(pointer, &name, &value, MDB_SET)
        if status == MDB_NOTFOUND { return nil }
        guard status == MDB_SUCCESS else { throw .make(status, doing: "reading through a cursor") }
        return unsafe _overrideLifetime(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(value)), copying: self)
    }

    /// The value under exactly this key; nil where there is none.
    @_lifetime(copy self)
    package mutating func value(at key: RawSpan) throws(LMDBError) -> RawSpan? {
        let bytes = unsafe key.withUnsafeBytes { unsafe $0 }
        return try unsafe value(at: bytes)
    }

    /// The entry with the smallest key; nil in an empty table.
    @_lifetime(copy self)
    package mutating func first() throws(LMDBError) -> Entry? { try move(MDB_FIRST) }

    /// The entry with the greatest key; nil in an empty table.
    @_lifetime(copy self)
    package mutating func last() throws(LMDBError) -> Entry? { try move(MDB_LAST) }

    /// The entry after the current one, or the first; nil after the last.
    @_lifetime(copy self)
    package mutating func next() throws(LMDBError) -> Entry? { try move(MDB_NEXT) }

    /// The entry before the current one, or the last; nil before the first.
    @_lifetime(copy self)
    package mutating func previous() throws(LMDBError) -> Entry? { try move(MDB_PREV) }

    /// The entry with the smallest key that is not below this one; nil where all are below.
    @_lifetime(copy self)
    package mutating func seek(atLeast key: UInt64) throws(LMDBError) -> Entry? {
        guard table.keys == .integers else { throw .keyKind(table) }
        var wanted = key
        var name = unsafe MDB_val()
        var value = unsafe MDB_val()
        let status = unsafe withUnsafeMutableBytes(of: &wanted) { bytes in
            unsafe name = unsafe MDB_val(mv_size: 8, mv_data: bytes.baseAddress)
            return unsafe mdb_cursor_get(pointer, &name, &value, MDB_SET_RANGE)
        }
        return try unsafe entry(status, name, value)
    }

    /// The entry with the smallest key that is not below this one; nil where all are below.
    @_lifetime(copy self)
    package mutating func seek(atLeast key: UnsafeRawBufferPointer) throws(LMDBError) -> Entry? {
        guard table.keys == .bytes else { throw .keyKind(table) }
        guard key.count > 0 else { throw .emptyKey }
        var name = unsafe MDB_val(key)
        var value = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(pointer, &name, &value, MDB_SET_RANGE)
        return try unsafe entry(status, name, value)
    }

    /// The entry with the smallest key that is not below this one; nil where all are below.
    @_lifetime(copy self)
    package mutating func seek(atLeast key: RawSpan) throws(LMDBError) -> Entry? {
        let bytes = unsafe key.withUnsafeBytes { unsafe $0 }
        return try unsafe seek(atLeast: bytes)
    }

    @_lifetime(copy self)
    private mutating func move(_ operation: MDB_cursor_op) throws(LMDBError) -> Entry? {
        var name = unsafe MDB_val()
        var value = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(pointer, &name, &value, operation)
        return try unsafe entry(status, name, value)
    }

    @_lifetime(copy self)
    private mutating func entry(_ status: Int32, _ name: MDB_val, _ value: MDB_val) throws(LMDBError) -> Entry? {
        isCurrentKnown = status == MDB_SUCCESS && table.keys == .integers
        guard status == MDB_SUCCESS else {
            if status == MDB_NOTFOUND { return nil }
            throw .make(status, doing: "moving a cursor")
        }
        let key = unsafe UnsafeRawBufferPointer(name)
        if isCurrentKnown { current = unsafe key.integerKey }
        let found = Entry(
            key: unsafe _overrideLifetime(RawSpan(_unsafeBytes: key), copying: self),
            value: unsafe _overrideLifetime(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(value)), copying: self)
        )
        return unsafe _overrideLifetime(found, copying: self)
    }
}

/// A key and its value where a cursor stands. Both end with the cursor's transaction.
package struct Entry: ~Escapable {
    package let key: RawSpan
    package let value: RawSpan

    @_lifetime(copy key)
    init(key: RawSpan, value: RawSpan) {
        self.key = key
        self.value = unsafe _overrideLifetime(value, copying: key)
    }

    /// The key of an entry in a table with integer keys; zero where the key has fewer than eight bytes.
    package var integerKey: UInt64 {
        key.byteCount >= 8 ? unsafe key.unsafeLoadUnaligned(as: UInt64.self) : 0
    }
}
