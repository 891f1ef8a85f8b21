import LarderLMDB

/// The tables of a generation.
///
/// | table | key | value |
/// | --- | --- | --- |
/// | `meta` | `state` | `GenerationState`; `stamp`: the name of the partition it belongs to, see `SealedText` |
/// | `names` | a field key or type name, at most `StoredKey.maximumSize` bytes | FieldID, see `StoredNumber` |
/// | `texts` | FieldID | the name in full, see `SealedText`; and above all FieldIDs the segments of the `TextHeap` |
/// | `keys` | a cache key, at most `StoredKey.maximumSize` bytes | RecordID, see `StoredNumber` |
/// | `records` | RecordID | a record, see `RecordFormat` |
/// | `fields` | `SplitFieldKey` | checksum, value word and payload: one field of a split record |
/// | `changes` | change number | `ChangeSet`, see `SealedText` |
/// | `applied` | the idempotency key of a mutation, at most `StoredKey.maximumSize` bytes | `AppliedEntry` |
/// | `received` | `ReceivedBlock.key`, or `SplitFieldKey` | when records came, or fields: see `ReceivedBlock`, `ReceivedRow` |
/// | `positions` | a synchronization's key | how far it has come: see `SyncPosition` |
///
/// Every value carries a checksum of itself and of its key. LMDB has none, and the walk of its pages does not look into
/// values.
///
/// `applied`, `received` and `positions` came to the format later. A generation without one of them gets it when it is
/// next opened for writing.
struct Tables {
    let meta, names, texts, keys, records, fields, changes: Table
    /// Nil where the generation was opened read-only and does not have it, and so knows of no mutation.
    let applied: Table?
    /// Nil likewise: when anything came is not known.
    let received: Table?
    /// Nil likewise: nothing was synchronized.
    let positions: Table?

    static let definitions = [
        TableDefinition(name: "meta", keys: .bytes),
        TableDefinition(name: "names", keys: .bytes),
        TableDefinition(name: "texts", keys: .integers),
        TableDefinition(name: "keys", keys: .bytes),
        TableDefinition(name: "records", keys: .integers),
        TableDefinition(name: "fields", keys: .bytes),
        TableDefinition(name: "changes", keys: .integers),
        TableDefinition(name: "applied", keys: .bytes, isOptional: true),
        TableDefinition(name: "received", keys: .bytes, isOptional: true),
        TableDefinition(name: "positions", keys: .bytes, isOptional: true),
    ]

    /// Nil if the environment was opened with other tables.
    init?(_ environment: Environment) {
        guard let meta = environment.table("meta"), let names = environment.table("names"),
            let texts = environment.table("texts"), let keys = environment.table("keys"),
            let records = environment.table("records"), let fields = environment.table("fields"),
            let changes = environment.table("changes")
        else { return nil }
        (self.meta, self.names, self.texts, self.keys) = (meta, names, texts, keys)
        (self.records, self.fields, self.changes) = (records, fields, changes)
        applied = environment.table("applied")
        received = environment.table("received")
        positions = environment.table("positions")
    }
}
