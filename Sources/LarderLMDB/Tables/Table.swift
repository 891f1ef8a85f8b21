import CLMDB

/// A table of one open environment. Valid until that environment closes, in that environment only.
package struct Table: Sendable, Hashable {
    let dbi: MDB_dbi
    package let keys: TableDefinition.Keys
}
