import CLMDB

extension Environment {
    /// Opens every table, and makes the missing ones unless read-only, which goes without optional ones. Takes the
    /// writer's lock only to make one.
    static func open(
        _ definitions: [TableDefinition], in handle: OpaquePointer, options: Options, folder: String,
        files: EnvironmentFiles
    ) throws(LMDBError) -> [String: Table] {
        var tables: [String: Table] = [:]
        let missing = try unsafe openTables(definitions, in: handle, folder: folder, &tables)
        if missing.isEmpty { return tables }
        guard !options.isReadOnly, let writer = files.writer else {
            guard let first = missing.first(where: { !$0.isOptional }) else { return tables }
            let advice = "Open it for writing once, or check the folder."
            throw LMDBError(.tableMissing, "There is no table \"\(first.name)\". \(advice)", path: folder)
        }
        // A damaged name looks like a table that was never made, and an empty one would stand for it.
        if options.mustExist, let first = missing.first(where: { !$0.isOptional }) {
            throw LMDBError(
                .damaged, "There is no table \"\(first.name)\", which the file had when it was made", path: folder)
        }
        try writer.acquire(deadline: .now + options.lockTimeout)
        defer { writer.release() }
        _ = try unsafe openTables(missing, in: handle, folder: folder, making: files.data, &tables)
        return tables
    }

    /// Opens tables in one transaction. Returns the missing ones; a write transaction makes them instead.
    ///
    /// - Parameter data: The file to make the missing ones in.
    private static func openTables(
        _ definitions: [TableDefinition], in handle: OpaquePointer, folder: String, making data: DataFile? = nil,
        _ tables: inout [String: Table]
    ) throws(LMDBError) -> [TableDefinition] {
        var pointer: OpaquePointer?
        let flags = data == nil ? UInt32(MDB_RDONLY) : 0
        let status = unsafe mdb_txn_begin(handle, nil, flags, &pointer)
        guard status == MDB_SUCCESS, let pointer = unsafe pointer else {
            throw .make(status, doing: "opening tables", path: folder)
        }
        var missing: [TableDefinition] = []
        do throws(LMDBError) {
            for definition in definitions {
                if let dbi = try unsafe openTable(definition, creates: data != nil, in: pointer, folder: folder) {
                    tables[definition.name] = Table(dbi: dbi, keys: definition.keys)
                } else {
                    missing.append(definition)
                }
            }
            try data?.rewriteMetaPages()
        } catch {
            unsafe mdb_txn_abort(pointer)
            throw error
        }
        let committed = unsafe mdb_txn_commit(pointer)
        guard committed == MDB_SUCCESS else { throw .make(committed, doing: "opening tables", path: folder) }
        return missing
    }

    private static func openTable(
        _ definition: TableDefinition, creates: Bool, in transaction: OpaquePointer, folder: String
    ) throws(LMDBError) -> MDB_dbi? {
        let doing = "opening table \"\(definition.name)\""
        let keyFlag = definition.keys == .integers ? UInt32(MDB_INTEGERKEY) : 0
        var dbi = MDB_dbi()
        let status = unsafe mdb_dbi_open(
            transaction, definition.name, keyFlag | (creates ? UInt32(MDB_CREATE) : 0), &dbi)
        if status == MDB_NOTFOUND { return nil }
        guard status == MDB_SUCCESS else { throw .make(status, doing: doing, path: folder) }
        var flags: UInt32 = 0
        let asked = unsafe mdb_dbi_flags(transaction, dbi, &flags)
        guard asked == MDB_SUCCESS else { throw .make(asked, doing: doing, path: folder) }
        guard flags == keyFlag else { throw .make(MDB_INCOMPATIBLE, doing: doing, path: folder) }
        return dbi
    }
}
