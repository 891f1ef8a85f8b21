import CLMDB

/// A named table as a program declares it when it opens an environment.
package struct TableDefinition: Sendable, Hashable {
    /// What the keys of a table are; LMDB orders and compares them accordingly.
    package enum Keys: Sendable, Hashable {
        /// 1 to 511 bytes, in the order of `memcmp`.
        case bytes
        /// `UInt64` in the machine's own byte order (`MDB_INTEGERKEY`), in numeric order.
        case integers
    }

    package let name: String
    package let keys: Keys
    /// A table that came to a format later: where it is missing, opening read-only goes without it.
    package let isOptional: Bool

    package init(name: String, keys: Keys, isOptional: Bool = false) {
        self.name = name
        self.keys = keys
        self.isOptional = isOptional
    }
}

/// A table of one open environment. Valid until that environment closes, in that environment only.
package struct Table: Sendable, Hashable {
    let dbi: MDB_dbi
    package let keys: TableDefinition.Keys
}
