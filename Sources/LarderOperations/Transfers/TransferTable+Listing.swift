package import Foundation
import GRDB

extension TransferTable {
    /// Whether nothing is to be begun of an object now.
    package typealias IsHeld = (
        _ kind: TransferDraft.Kind, _ storage: String?, _ bucket: String, _ key: String, _ region: String?
    ) -> Bool

    /// Nil where there is none of this id, or it was forgotten.
    package func find(_ id: UUID) throws(OperationsError) -> StoredTransfer? {
        try read { try $0.transfer(id) }.map(located)
    }

    /// Transfers in the order in which they were queued, of one partition or of all, in any state or in some. Those
    /// whose rows are damaged are left out; a check names them.
    package func list(
        in partition: String? = nil, states: Set<TransferState>? = nil
    ) throws(OperationsError) -> [StoredTransfer] {
        try read { try $0.list(partition, states) }.map(located)
    }

    /// The transfers of all partitions that are being cancelled, and the failed ones of which something may be left, in
    /// the order in which they were queued. Others that have failed are not looked at.
    ///
    /// - Parameter named: Failed ones that are among them in any case.
    package func remains(named: Set<UUID>) throws(OperationsError) -> [StoredTransfer] {
        try read { transaction in
            let noted = try transaction.db.readableRows(TransferTransaction.allRemainsSQL) { try StoredTransfer($0) }
            let others = try named.subtracting(noted.map(\.id)).compactMap { try transaction.transfer($0) }
            return (noted + others.filter { $0.state == .failed }).sorted { $0.sequence < $1.sequence }
        }.map(located)
    }

    /// The parts of a transfer that have arrived whole, by number.
    package func parts(of id: UUID) throws(OperationsError) -> [StoredPart] {
        try read { transaction in
            try transaction.db.rows(
                "SELECT \(TransferTransaction.partColumns) FROM \(TransferTransaction.partTables) WHERE t.id = ? "
                    + "ORDER BY p.number", [id]
            ) { try StoredPart($0) }
        }
    }

    /// What can be begun now, those of the highest priority first.
    ///
    /// - Parameters:
    ///   - storages: The storages that the runner has; transfers of others are not counted as pending.
    ///   - resting: Those among them of which nothing is to be begun now.
    ///   - leavesHandedOver: Whether transfers are left alone that an executor outside of the program may have, and
    ///     count as none that are pending.
    ///   - isHeld: Whether nothing is to be begun of this object now. Where that is so of very many, those behind them
    ///     are not looked at.
    package func runnable(
        in partition: String, now: Date, limit: Int, storages: Set<String?> = [nil],
        resting: Set<String?> = [], leavingHandedOver leavesHandedOver: Bool = false,
        except isHeld: IsHeld = { _, _, _, _, _ in false }
    ) throws(OperationsError) -> RunnableTransfers {
        try read { transaction in
            guard let number = try transaction.db.partition(partition) else { return RunnableTransfers() }
            return try transaction.runnable(
                in: number, now: now, limit: limit, storages, resting, leavesHandedOver, except: isHeld)
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
    /// Transfers that were cancelled or have failed, and have left something behind.
    package var remains: [UUID] = []
    /// When to look again if nothing is committed before.
    package var lookAgain: Date?
    /// Whether there are pending ones whose time is over.
    package var mustExpire = false
    /// Whether there are pending ones whose storage the runner does not have, and which do not say so yet.
    package var mustNoteStorages = false
    /// Whether the runner has nothing to begin: no transfer is pending whose storage it has and does not let rest. What
    /// an executor has, and what waits behind that, does not count.
    package var isEmpty = true
}

extension TransferTransaction {
    static let selection = "SELECT \(columns) FROM \(tables)"

    static let columns = """
        t.sequence, t.id, p.name, t.kind, t.state, t.priority, t.bucket, t.key, t.region, t.path, t.replaces,
            t.content_type, t.metadata, t.attempts, t.owner, t.created, t.expires, t.not_before, t.size, t.device,
            t.inode, t.modified, t.sha256, t.part_size, t.upload, t.uploads_before, t.etag, t.version, t.crc32c,
            t.ended, t.failure_code, t.failure_message, t.failure_time,
            (SELECT CAST(total(x.size) AS INTEGER) FROM transfer_part x WHERE x.sequence = t.sequence), t.storage,
            t.handed_over
        """
    static let tables = "transfer t JOIN partition p ON p.id = t.partition"

    static let partColumns = "p.number, p.size, p.etag, p.crc32c, t.size AS whole, t.part_size"
    static let partTables = "transfer_part p JOIN transfer t ON t.sequence = p.sequence"

    func transfer(_ id: UUID) throws -> StoredTransfer? {
        try db.row(Self.selection + " WHERE t.id = ?", [id]) { try StoredTransfer($0) }
    }

    func list(_ partition: String?, _ states: Set<TransferState>?) throws -> [StoredTransfer] {
        var conditions = ["1"]
        if partition != nil { conditions.append("p.name = ?") }
        if let states { conditions.append("t.state IN \(transfer: states)") }
        return try db.readableRows(
            Self.selection + " WHERE \(conditions.joined(separator: " AND ")) ORDER BY t.sequence",
            partition.map { [$0] } ?? []
        ) { try StoredTransfer($0) }
    }

    func counts(in partition: String) throws -> [TransferState: Int] {
        let counts = try db.readableRows(
            """
            SELECT state, count(*) FROM transfer WHERE partition = (SELECT id FROM partition WHERE name = ?)
            GROUP BY state
            """, [partition]
        ) { (try TransferState(stored: $0.integer(0)), Int(try $0.integer(1))) }
        return Dictionary(counts, uniquingKeysWith: +)
    }

    /// The third parameter: the names of the runner's storages, as JSON; the fourth: whether it has the one that has
    /// none. The fifth column: whether an earlier upload of the same key is not over yet. The later one is to be what stays.
    /// What has no place was queued before what has one. The sixth: until when the object of an earlier one may appear,
    /// as far as that can be said by a clock that may have been set back. At most a day counts, whatever is stored.
    static let turnSQL = """
        SELECT id, not_before, not_before_set, expires,
            kind = \(kind: .upload) AND (\(isPreceded("transfer_place", "e.place = t.place"))
                OR \(isPreceded("transfer_unplaced", "e.place IS NULL"))),
            (SELECT CAST(max(\(doubtEnd)) AS INTEGER) FROM transfer e INDEXED BY transfer_doubt
             WHERE e.place = t.place AND e.doubt > ?2 AND e.doubt_set <= ?2 AND \(doubtEnd) > ?2
                AND e.sequence < t.sequence AND e.partition = t.partition AND e.storage IS t.storage
                AND e.bucket = t.bucket AND e.key = t.key),
            kind, bucket, key, region, storage, handed_over
        FROM transfer t INDEXED BY transfer_turn
        WHERE partition = ?1 AND state = \(transfer: .pending)
            AND (storage IS NULL AND ?4 OR storage IN (SELECT value FROM json_each(?3)))
        ORDER BY priority DESC, sequence
        """

    private static let doubtEnd = "min(e.doubt, e.doubt_set + \(StoredPause.longest))"

    private static func isPreceded(_ index: String, _ place: String) -> String {
        """
        EXISTS (
            SELECT 1 FROM transfer e INDEXED BY \(index)
            WHERE e.kind = \(kind: .upload) AND e.state IN \(transfer: [.pending, .running]) AND \(place)
                AND e.sequence < t.sequence
                AND e.partition = t.partition AND e.storage IS t.storage AND e.bucket = t.bucket AND e.key = t.key)
        """
    }

    static let nextExpirySQL = """
        SELECT expires FROM transfer INDEXED BY transfer_expiry
        WHERE partition = ? AND state = \(transfer: .pending) AND expires IS NOT NULL ORDER BY expires LIMIT 1
        """

    /// The condition of the index.
    private static let isRemains = """
        (state = \(transfer: .cancelling)
            OR state = \(transfer: .failed) AND (upload IS NOT NULL OR uploads_before IS NOT NULL
            OR kind = \(kind: .download) AND inode IS NOT NULL))
        """
    static let remainsSQL = """
        SELECT id FROM transfer INDEXED BY transfer_remains WHERE partition = ? AND \(isRemains) ORDER BY sequence
        """
    static let allRemainsSQL =
        selection
        + " WHERE t.sequence IN (SELECT sequence FROM transfer INDEXED BY transfer_remains WHERE \(isRemains))"

    /// How many that are held are passed over at most.
    private static let mostHeld = 1_000

    func runnable(
        in partition: Int64, now: Date, limit: Int, _ storages: Set<String?>, _ resting: Set<String?>,
        _ leavesHandedOver: Bool, except isHeld: TransferTable.IsHeld
    ) throws -> RunnableTransfers {
        var runnable = RunnableTransfers()
        var held = 0
        let time = now.milliseconds
        var earliest: Int64?
        try db.scan(Self.turnSQL, [partition, time] + Self.bindings(of: storages.subtracting(resting))) { row in
            if leavesHandedOver, let set = try row.optional(11, row.date),
                let end = StoredTransfer.handOverEnd(set, now)
            {
                earliest = min(earliest ?? end.milliseconds, end.milliseconds)
                return true
            }
            // One that is preceded is pending by itself once the one before it is over.
            let isPreceded = try row.integer(4) != 0
            if !isPreceded { runnable.isEmpty = false }
            if let end = try row.optional(3, row.integer), end <= time { return true }
            let (until, set) = (try row.optional(1, row.integer), try row.optional(2, row.integer))
            if let wait = StoredPause.end(until, set: set, now: time) {
                earliest = min(earliest ?? wait, wait)
                return true
            }
            if isPreceded { return true }
            if let doubt = try row.optional(5, row.integer) {
                earliest = min(earliest ?? doubt, doubt)
                return true
            }
            guard runnable.ids.count < limit else { return false }
            let kind = try TransferDraft.Kind(stored: row.integer(6))
            let storage = try row.optional(10, row.text)
            if isHeld(kind, storage, try row.text(7), try row.text(8), try row.optional(9, row.text)) {
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
        runnable.mustNoteStorages = try db.exists(Self.unservedSQL, [partition] + Self.bindings(of: storages))
        runnable.lookAgain = earliest.map(Date.init(milliseconds:))
        return runnable
    }
}

extension StoredTransfer {
    /// From the columns of `TransferTransaction.selection`.
    init(_ row: Columns) throws(OperationsError) {
        let kind = try TransferDraft.Kind(stored: row.integer(3))
        let size = try row.optional(18, row.size)
        let file =
            try row.isNull(19) || row.isNull(20)
            ? nil
            : FileIdentity(
                device: row.integer(19), inode: row.integer(20), size: size ?? 0,
                modified: row.optional(21, row.integer) ?? 0)
        let failure =
            try row.isNull(30)
            ? nil
            : TransferFailure(
                code: row.text(30), message: row.text(31), time: row.optional(32, row.date) ?? .distantPast)
        self.init(
            sequence: try row.integer(0), id: try row.uuid(1), partition: try row.text(2), kind: kind,
            state: try TransferState(stored: row.integer(4)), storage: try row.optional(34, row.text),
            priority: Int(try row.integer(5)),
            bucket: try row.text(6), key: try row.text(7), region: try row.optional(8, row.text),
            path: try row.text(9), replaces: try row.integer(10) == 1, contentType: try row.optional(11, row.text),
            metadata: try row.optional(12, row.metadata), attempts: try row.count(13),
            owner: try row.optional(14, row.text), created: try row.date(15), expires: try row.optional(16, row.date),
            notBefore: try row.optional(17, row.date), size: size, file: file,
            sha256: try row.optional(22, row.sha256), partSize: try row.optional(23, row.size),
            upload: try row.optional(24, row.text),
            uploadsBefore: try row.optional(25, row.names), etag: try row.optional(26, row.text),
            version: try row.optional(27, row.text), crc32c: try row.optional(28, row.checksum),
            ended: try row.optional(29, row.date), failure: failure,
            handedOver: try row.optional(35, row.date), arrived: try row.size(33))
        try requirePlan()
    }

    /// What has arrived is of parts into which the size is cut.
    private func requirePlan() throws(OperationsError) {
        if let partSize {
            guard partSize > 0, size.map({ PartPlan(size: $0, partSize: partSize) != nil }) ?? true else {
                throw .damagedRow("\(size ?? 0) bytes cannot be cut into parts of \(partSize)")
            }
        }
        guard arrived <= size ?? 0 else { throw .damagedRow("\(arrived) bytes of \(size ?? 0) have arrived") }
    }
}

extension StoredPart {
    /// From the columns of `TransferTransaction.partColumns`: a part, and the plan that its transfer has.
    init(_ row: Columns) throws(OperationsError) {
        self.init(
            number: Int(try row.integer(0)), size: try row.integer(1), etag: try row.optional(2, row.text),
            crc32c: try row.optional(3, row.checksum))
        guard let whole = try row.optional(4, row.size), let partSize = try row.optional(5, row.size),
            let plan = PartPlan(size: whole, partSize: partSize), plan.has(self)
        else { throw .damagedRow("part \(number) of \(size) bytes is none of its transfer's") }
    }
}

extension Columns {
    /// A JSON array of texts.
    func names(_ index: Int32) throws(OperationsError) -> [String] { try decoded([String].self, index) }

    /// A JSON object of texts.
    func metadata(_ index: Int32) throws(OperationsError) -> [UInt8] {
        _ = try decoded([String: String].self, index)
        return try bytes(index)
    }

    private func decoded<Value: Decodable>(
        _ type: Value.Type, _ index: Int32
    ) throws(OperationsError) -> Value {
        // Foundation takes more for JSON than JSON, such as texts that are no UTF-8.
        let json = Data(try json(index))
        do { return try JSONDecoder().decode(type, from: json) } catch {
            throw .damagedRow("\(name(index)) is not the JSON that it was")
        }
    }

    func sha256(_ index: Int32) throws(OperationsError) -> [UInt8] {
        let digest = try bytes(index)
        guard digest.count == 32 else { throw .damagedRow("\(name(index)) is no SHA-256") }
        return digest
    }

    func checksum(_ index: Int32) throws(OperationsError) -> UInt32 {
        guard let value = UInt32(exactly: try integer(index)) else {
            throw .damagedRow("\(name(index)) is no checksum")
        }
        return value
    }
}
