internal import CLMDB

extension Environment {
    /// Opens every table in one transaction; makes the missing ones unless read-only.
    static func open(
        _ definitions: [TableDefinition], in handle: OpaquePointer, options: Options, folder: String
    ) throws(LMDBError) -> [String: Table] {
        var pointer: OpaquePointer?
        let status = mdb_txn_begin(handle, nil, options.isReadOnly ? UInt32(MDB_RDONLY) : 0, &pointer)
        guard status == MDB_SUCCESS, let pointer else { throw .make(status, doing: "opening tables", path: folder) }
        var tables: [String: Table] = [:]
        do throws(LMDBError) {
            for definition in definitions {
                let dbi = try openTable(definition, in: pointer, isReadOnly: options.isReadOnly, folder: folder)
                tables[definition.name] = Table(dbi: dbi, keys: definition.keys)
            }
        } catch {
            mdb_txn_abort(pointer)
            throw error
        }
        let committed = mdb_txn_commit(pointer)
        guard committed == MDB_SUCCESS else { throw .make(committed, doing: "opening tables", path: folder) }
        return tables
    }

    private static func openTable(
        _ definition: TableDefinition, in transaction: OpaquePointer, isReadOnly: Bool, folder: String
    ) throws(LMDBError) -> MDB_dbi {
        let keyFlag = definition.keys == .integers ? UInt32(MDB_INTEGERKEY) : 0
        var dbi = MDB_dbi()
        var status = mdb_dbi_open(transaction, definition.name, keyFlag, &dbi)
        if status == MDB_NOTFOUND {
            guard !isReadOnly else {
                let advice = "Open it for writing once, or check the folder."
                throw LMDBError(
                    .tableMissing, "There is no table \"\(definition.name)\". \(advice)", path: folder, status: status)
            }
            status = mdb_dbi_open(transaction, definition.name, keyFlag | UInt32(MDB_CREATE), &dbi)
        }
        guard status == MDB_SUCCESS else {
            throw .make(status, doing: "opening table \"\(definition.name)\"", path: folder)
        }
        var flags: UInt32 = 0
        let asked = mdb_dbi_flags(transaction, dbi, &flags)
        guard asked == MDB_SUCCESS else { throw .make(asked, doing: "opening a table", path: folder) }
        guard flags == keyFlag else {
            throw .make(MDB_INCOMPATIBLE, doing: "opening table \"\(definition.name)\"", path: folder)
        }
        return dbi
    }
}
