import CLMDB

/// LMDB's transaction, and the reads that both kinds of transaction are made of.
///
/// A copyable pointer that owns nothing. Safe where it is used: its holders are the noncopyable transactions that own
/// what it points to, and they bind to their own life what is read through it.
@safe struct TransactionHandle {
    let pointer: OpaquePointer

    var id: UInt64 { unsafe UInt64(mdb_txn_id(pointer)) }

    @inline(__always)
    func get(_ key: UInt64, in table: Table) throws(LMDBError) -> UnsafeRawBufferPointer? {
        guard table.keys == .integers else { throw .keyKind(table) }
        var key = key
        var value = unsafe MDB_val()
        let status = unsafe withUnsafeMutableBytes(of: &key) { bytes in
            var name = unsafe MDB_val(mv_size: 8, mv_data: bytes.baseAddress)
            return unsafe mdb_get(pointer, table.dbi, &name, &value)
        }
        return try unsafe Self.found(status, value)
    }

    @inline(__always)
    func get(_ key: UnsafeRawBufferPointer, in table: Table) throws(LMDBError) -> UnsafeRawBufferPointer? {
        guard table.keys == .bytes else { throw .keyKind(table) }
        guard key.count > 0 else { throw .emptyKey }
        var name = unsafe MDB_val(key)
        var value = unsafe MDB_val()
        return try unsafe Self.found(mdb_get(pointer, table.dbi, &name, &value), value)
    }

    func entryCount(of table: Table) throws(LMDBError) -> Int { try tree(of: table).entries }

    func tree(of table: Table) throws(LMDBError) -> Environment.Statistics.Tree {
        var statistics = MDB_stat()
        let status = unsafe mdb_stat(pointer, table.dbi, &statistics)
        guard status == MDB_SUCCESS else { throw .make(status, doing: "counting entries") }
        return Environment.Statistics.Tree(
            entries: Int(clamping: statistics.ms_entries),
            depth: Int(statistics.ms_depth),
            branchPages: Int(clamping: statistics.ms_branch_pages),
            leafPages: Int(clamping: statistics.ms_leaf_pages),
            overflowPages: Int(clamping: statistics.ms_overflow_pages)
        )
    }

    @inline(__always)
    private static func found(_ status: Int32, _ value: MDB_val) throws(LMDBError) -> UnsafeRawBufferPointer? {
        if status == MDB_SUCCESS { return unsafe UnsafeRawBufferPointer(value) }
        if status == MDB_NOTFOUND { return nil }
        throw .make(status, doing: "reading a value")
    }
}

extension LMDBError {
    @inline(never)
    static func keyKind(_ table: Table) -> LMDBError {
        LMDBError(.keyKindMismatch, "The table has keys of kind \(table.keys); use that kind.")
    }

    static var emptyKey: LMDBError { LMDBError(.keyEmpty, "A key holds at least one byte.", status: MDB_BAD_VALSIZE) }
}
