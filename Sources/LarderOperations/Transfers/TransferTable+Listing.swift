package import Foundation
internal import GRDB

extension TransferTable {
    /// Nil where there is none of this id, or it was forgotten.
    package func find(_ id: UUID) throws(OperationsError) -> StoredTransfer? {
        try read { try $0.transfer(id) }
    }

    /// Transfers in the order in which they were queued, of one partition or of all, in any state or in some.
    package func list(
        in partition: String? = nil, states: Set<TransferState>? = nil
    ) throws(OperationsError) -> [StoredTransfer] {
        try read { try $0.list(partition, states) }
    }

    /// Those of all partitions that are being cancelled, and the failed ones of which something may be left, in the
    /// order in which they were queued. Others that have failed are not looked at.
    ///
    /// - Parameter named: Failed ones that are among them in any case.
    package func remains(named: Set<UUID>) throws(OperationsError) -> [StoredTransfer] {
        try read { transaction in
            let noted = try transaction.db.rows(TransferTransaction.allRemainsSQL) { try StoredTransfer($0) }
            let others = try named.subtracting(noted.map(\.id)).compactMap { try transaction.transfer($0) }
            return (noted + others.filter { $0.state == .failed }).sorted { $0.sequence < $1.sequence }
        }
    }

    /// The parts of a transfer that have arrived whole, by number.
    package func parts(of id: UUID) throws(OperationsError) -> [StoredPart] {
        try read { transaction in
            try transaction.db.rows(
                """
                SELECT p.number, p.size, p.etag, p.crc32c FROM transfer_part p JOIN transfer t USING (sequence)
                WHERE t.id = ? ORDER BY p.number
                """, [id]
            ) { row in
                StoredPart(
                    number: Int(try row.integer(0)), size: try row.integer(1), etag: try row.optional(2, row.text),
                    crc32c: try row.optional(3, row.checksum))
            }
        }
    }

    /// What can be begun now, those of the highest priority first.
    ///
    /// - Parameter isHeld: Whether nothing is to be begun of this object now. Where that is so of very many, those
    ///   behind them are not looked at.
    package func runnable(
        in partition: String, now: Date, limit: Int,
        except isHeld: (_ bucket: String, _ key: String, _ region: String?) -> Bool = { _, _, _ in false }
    ) throws(OperationsError) -> RunnableTransfers {
        try read { transaction in
            guard let number = try transaction.db.partition(partition) else { return RunnableTransfers() }
            return try transaction.runnable(in: number, now: now, limit: limit, except: isHeld)
        }
    }

    /// How many uploads of a partition the storage may not have, failed ones included.
    package func unsentUploads(in partition: String) throws(OperationsError) -> Int {
        try read { try $0.db.partition(partition).map($0.unsentUploads(in:)) ?? 0 }
    }

    /// How many of a partition are in each state.
    package func counts(in partition: String) throws(OperationsError) -> [TransferState: Int] {
        try read { try $0.counts(in: partition) }
    }
}

/// What can be begun.
package struct RunnableTransfers: Sendable, Hashable {
    package var ids: [UUID] = []
    /// Those that were cancelled or have failed, and have left something behind.
    package var remains: [UUID] = []
    /// When to look again if nothing is committed before.
    package var lookAgain: Date?
    /// Whether there are pending ones whose time is over.
    package var mustExpire = false
    /// Whether none are pending.
    package var isEmpty = true
}

extension TransferTransaction {
    static let selection = """
        SELECT t.sequence, t.id, p.name, t.kind, t.state, t.priority, t.bucket, t.key, t.region, t.path, t.replaces,
            t.content_type, t.metadata, t.attempts, t.owner, t.created, t.expires, t.not_before, t.size, t.device,
            t.inode, t.modified, t.sha256, t.part_size, t.upload, t.uploads_before, t.etag, t.version, t.crc32c,
            t.ended, t.failure_code, t.failure_message, t.failure_time,
            (SELECT ifnull(sum(x.size), 0) FROM transfer_part x WHERE x.sequence = t.sequence)
        FROM transfer t JOIN partition p ON p.id = t.partition
        """

    func transfer(_ id: UUID) throws -> StoredTransfer? {
        try db.row(Self.selection + " WHERE t.id = ?", [id]) { try StoredTransfer($0) }
    }

    func list(_ partition: String?, _ states: Set<TransferState>?) throws -> [StoredTransfer] {
        var conditions = ["1"]
        if partition != nil { conditions.append("p.name = ?") }
        if let states {
            conditions.append("t.state IN (\(states.map { String($0.rawValue) }.sorted().joined(separator: ", ")))")
        }
        return try db.rows(
            Self.selection + " WHERE \(conditions.joined(separator: " AND ")) ORDER BY t.sequence",
            partition.map { [$0] } ?? []
        ) { try StoredTransfer($0) }
    }

    func counts(in partition: String) throws -> [TransferState: Int] {
        let counts = try db.rows(
            """
            SELECT state, count(*) FROM transfer WHERE partition = (SELECT id FROM partition WHERE name = ?)
            GROUP BY state
            """, [partition]
        ) { (try TransferState(stored: $0.integer(0)), Int(try $0.integer(1))) }
        return Dictionary(counts, uniquingKeysWith: +)
    }

    /// The fifth column: whether an earlier upload of the same key is not over yet. The later one is to be what stays.
    /// What has no place was queued before what has one.
    static let turnSQL = """
        SELECT id, not_before, not_before_set, expires,
            kind = 0 AND (\(isPreceded("transfer_place", "e.place = t.place"))
                OR \(isPreceded("transfer_unplaced", "e.place IS NULL"))), bucket, key, region
        FROM transfer t INDEXED BY transfer_turn
        WHERE partition = ? AND state = 0 ORDER BY priority DESC, sequence
        """

    private static func isPreceded(_ index: String, _ place: String) -> String {
        """
        EXISTS (
            SELECT 1 FROM transfer e INDEXED BY \(index)
            WHERE e.kind = 0 AND e.state IN (0, 1) AND \(place) AND e.sequence < t.sequence
                AND e.partition = t.partition AND e.bucket = t.bucket AND e.key = t.key)
        """
    }

    static let nextExpirySQL = """
        SELECT expires FROM transfer INDEXED BY transfer_expiry
        WHERE partition = ? AND state = 0 AND expires IS NOT NULL ORDER BY expires LIMIT 1
        """

    /// The condition of the index.
    private static let isRemains = """
        (state = 4
            OR state = 3 AND (upload IS NOT NULL OR uploads_before IS NOT NULL OR kind = 1 AND inode IS NOT NULL))
        """
    static let remainsSQL = """
        SELECT id FROM transfer INDEXED BY transfer_remains WHERE partition = ? AND \(isRemains) ORDER BY sequence
        """
    static let allRemainsSQL = selection
        + " WHERE t.sequence IN (SELECT sequence FROM transfer INDEXED BY transfer_remains WHERE \(isRemains))"

    /// How many that are held are passed over at most.
    private static let mostHeld = 1_000

    func runnable(
        in partition: Int64, now: Date, limit: Int, except isHeld: (String, String, String?) -> Bool
    ) throws -> RunnableTransfers {
        var runnable = RunnableTransfers()
        var held = 0
        let time = now.milliseconds
        var earliest: Int64?
        try db.scan(Self.turnSQL, [partition]) { row in
            runnable.isEmpty = false
            let wait = try row.optional(1, row.integer)
            if let end = try row.optional(3, row.integer), end <= time { return true }
            if let wait, QueueTransaction.isWaiting(until: wait, set: try row.optional(2, row.integer), now: time) {
                earliest = min(earliest ?? wait, wait)
                return true
            }
            if try row.integer(4) != 0 { return true }
            guard runnable.ids.count < limit else { return false }
            if isHeld(try row.text(5), try row.text(6), try row.optional(7, row.text)) {
                held += 1
                return held < Self.mostHeld
            }
            runnable.ids.append(try row.uuid(0))
            return true
        }
        runnable.remains = try db.rows(Self.remainsSQL, [partition]) { try $0.uuid(0) }
        if let expiry = try db.integer(Self.nextExpirySQL, [partition]) {
            runnable.mustExpire = expiry <= time
            earliest = min(earliest ?? expiry, expiry)
        }
        runnable.lookAgain = earliest.map(Date.init(milliseconds:))
        return runnable
    }
}

extension StoredTransfer {
    /// From the columns of `TransferTransaction.selection`.
    init(_ row: Columns) throws {
        guard let kind = TransferDraft.Kind(rawValue: Int(try row.integer(3))) else {
            throw OperationsError.damaged("a transfer is of no known kind")
        }
        let size = try row.optional(18, row.integer)
        let file = try row.isNull(19) || row.isNull(20) ? nil : FileIdentity(
            device: row.integer(19), inode: row.integer(20), size: size ?? 0,
            modified: row.optional(21, row.integer) ?? 0)
        let failure = try row.isNull(30) ? nil : TransferFailure(
            code: row.text(30), message: row.text(31), time: row.optional(32, row.date) ?? .distantPast)
        self.init(
            sequence: try row.integer(0), id: try row.uuid(1), partition: try row.text(2), kind: kind,
            state: try TransferState(stored: row.integer(4)), priority: Int(try row.integer(5)),
            bucket: try row.text(6), key: try row.text(7), region: try row.optional(8, row.text),
            path: try row.text(9), replaces: try row.integer(10) == 1, contentType: try row.optional(11, row.text),
            metadata: try row.optional(12, row.bytes), attempts: Int(try row.integer(13)),
            owner: try row.optional(14, row.text), created: try row.date(15), expires: try row.optional(16, row.date),
            notBefore: try row.optional(17, row.date), size: size, file: file,
            sha256: try row.optional(22, row.bytes), partSize: try row.optional(23, row.integer),
            upload: try row.optional(24, row.text),
            uploadsBefore: try row.optional(25, row.names), etag: try row.optional(26, row.text),
            version: try row.optional(27, row.text), crc32c: try row.optional(28, row.checksum),
            ended: try row.optional(29, row.date), failure: failure, arrived: try row.integer(33))
    }
}

extension Columns {
    /// A JSON array of texts.
    func names(_ index: Int32) throws(OperationsError) -> [String] {
        let json = Data(try bytes(index))
        do { return try JSONDecoder().decode([String].self, from: json) } catch {
            throw .damaged("column \(index) of a row is no list of names")
        }
    }

    func checksum(_ index: Int32) throws(OperationsError) -> UInt32 {
        guard let value = UInt32(exactly: try integer(index)) else {
            throw .damaged("column \(index) of a row is no checksum")
        }
        return value
    }
}
