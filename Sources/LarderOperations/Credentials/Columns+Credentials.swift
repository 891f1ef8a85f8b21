// How what is stored of credentials is read.

extension StoredPartitionKey {
    static let columns = "p.name, k.sealed_with, k.sealed, k.created"
    static let tables = "partition_key k JOIN partition p ON p.id = k.partition"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        self.init(
            partition: try row.text(0), sealedWith: try row.text(1), sealed: try row.bytes(2), created: try row.date(3))
    }
}

extension SealedCredential {
    static let columns = "c.kind, c.identity, c.sealed, c.created, c.updated"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        self.init(
            kind: try row.text(0), identity: try row.text(1), sealed: try row.bytes(2), created: try row.date(3),
            updated: try row.date(4))
    }
}

extension StoredSession {
    static let columns =
        "s.state, s.reason, s.changed, (SELECT group_concat(c.kind) FROM credential c WHERE c.partition = s.partition)"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        self.init(state: try row.text(0), reason: try row.optional(1, row.text), changed: try row.date(2))
        kinds = try Set(row.optional(3, row.text)?.split(separator: ",").map(String.init) ?? [])
    }
}

extension QuarantinedCredential {
    static let columns = "q.id, p.name, q.kind, q.identity, q.reason, q.quarantined"
    static let tables = "quarantined_credential q JOIN partition p ON p.id = q.partition"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        self.init(
            id: try row.integer(0), partition: try row.text(1), kind: try row.text(2), identity: try row.text(3),
            reason: try row.text(4), quarantined: try row.date(5))
    }
}
