import Foundation
import GRDB
import LarderFiles

extension TransferTransaction {
    func begin(_ id: UUID, owner: String, now: Date) throws -> StoredTransfer? {
        guard var transfer = try transfer(id), transfer.state == .pending,
            try db.usablePartition(transfer.partition) != nil, transfer.expires.map({ now < $0 }) ?? true
        else { return nil }
        try db.run(
            """
            UPDATE transfer SET state = \(transfer: .running), attempts = attempts + 1, owner = ?, not_before = NULL,
                not_before_set = NULL
            WHERE sequence = ?
            """, [owner, transfer.sequence])
        transfer.state = .running
        transfer.attempts += 1
        transfer.owner = owner
        transfer.notBefore = nil
        return transfer
    }

    /// See `TransferTable.recover`.
    func recover(_ partition: Int64, now: Date, _ putting: Date, _ completing: Date) throws {
        try db.run(
            """
            UPDATE transfer INDEXED BY transfer_work SET doubt_set = ?2, doubt = iif(part_size IS NULL, ?3, ?4)
            WHERE partition = ?1 AND \(Self.isUnderWay) AND kind = \(kind: .upload) AND (part_size IS NULL
                OR (SELECT total(x.size) FROM transfer_part x WHERE x.sequence = transfer.sequence) >= size)
            """, [partition, now.milliseconds, putting.milliseconds, completing.milliseconds])
        try db.run(
            """
            UPDATE transfer INDEXED BY transfer_work SET state = \(transfer: .pending), owner = NULL
            WHERE partition = ? AND \(Self.isUnderWay)
            """, [partition])
    }

    func note(_ note: TransferNote, of sequence: Int64) throws {
        switch note {
        case .object(let etag, let size, let crc32c):
            try db.run(
                "UPDATE transfer SET etag = ?, size = ?, crc32c = ? WHERE sequence = ?",
                [etag, size, crc32c.map(Int64.init), sequence])
        case .partSize(let size): try db.run("UPDATE transfer SET part_size = ? WHERE sequence = ?", [size, sequence])
        case .file(let file):
            try db.run(
                "UPDATE transfer SET device = ?, inode = ? WHERE sequence = ?", [file.device, file.inode, sequence])
        case .uploadAsked(let before):
            try db.run(
                "UPDATE transfer SET uploads_before = ? WHERE sequence = ?",
                [Array(try JSONEncoder().encode(before)), sequence])
        case .upload(let upload):
            try db.run(
                "UPDATE transfer SET upload = ?, uploads_before = NULL WHERE sequence = ?", [upload, sequence])
        case .parts(let parts):
            // One that arrives on another connection after a restart is of no plan.
            for part in parts {
                try db.run(
                    """
                    INSERT OR REPLACE INTO transfer_part (sequence, number, size, etag, crc32c)
                    SELECT ?1, ?2, ?3, ?4, ?5
                    WHERE EXISTS (SELECT 1 FROM transfer WHERE sequence = ?1 AND part_size IS NOT NULL)
                    """, [sequence, part.number, part.size, part.etag, part.crc32c.map(Int64.init)])
            }
        case .lost(let numbers):
            for number in numbers {
                try db.run("DELETE FROM transfer_part WHERE sequence = ? AND number = ?", [sequence, number])
            }
        case .uploadLeft: try leaveUpload(of: sequence)
        case .handedOver(let time):
            try db.run("UPDATE transfer SET handed_over = ? WHERE sequence = ?", [time.milliseconds, sequence])
        case .restart: try restart(sequence)
        }
    }

    private func leaveUpload(of sequence: Int64) throws {
        try db.run(
            """
            INSERT INTO transfer (id, partition, kind, state, priority, bucket, key, region, path, replaces, attempts,
                created, upload, forgotten, storage)
            SELECT ?1, partition, kind, \(transfer: .cancelling), priority, bucket, key, region, path, replaces, 0,
                created, upload, 1, storage
            FROM transfer t WHERE sequence = ?2 AND upload IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM transfer o WHERE o.partition = t.partition AND o.state = \(transfer: .cancelling)
                    AND o.upload = t.upload AND o.storage IS t.storage AND o.bucket = t.bucket AND o.key = t.key)
            """, [UUID(), sequence])
    }

    private func restart(_ sequence: Int64) throws {
        try db.run("DELETE FROM transfer_part WHERE sequence = ?", [sequence])
        try db.run(
            """
            UPDATE transfer SET part_size = NULL, upload = NULL, uploads_before = NULL, etag = NULL, version = NULL,
                crc32c = NULL, size = iif(kind = \(kind: .upload), size, NULL),
                device = iif(kind = \(kind: .upload), device, NULL),
                inode = iif(kind = \(kind: .upload), inode, NULL)
            WHERE sequence = ?
            """, [sequence])
    }

    func finish(
        _ attempt: TransferAttempt, _ etag: String?, _ version: String?, _ crc32c: UInt32?, now: Date
    ) throws {
        let sequence = try sequence(attempt)
        try db.run(
            """
            UPDATE transfer SET etag = ifnull(?, etag), version = ?, crc32c = ifnull(?, crc32c), failure_code = NULL,
                failure_message = NULL, failure_time = NULL
            WHERE sequence = ?
            """, [etag, version, crc32c.map(Int64.init), sequence])
        try end(sequence, .done, now: now)
        try db.run("DELETE FROM mutation_transfer WHERE transfer = ?", [sequence])
    }

    /// To done or cancelled: its parts are of no use any more. An upload in parts makes no second object, and none once
    /// it is aborted; what was sent in one piece and was not answered may still become one.
    func end(_ sequence: Int64, _ state: TransferState, now: Date) throws {
        try set(state, of: sequence)
        try db.run(
            """
            UPDATE transfer SET ended = ?, doubt = iif(part_size IS NULL, doubt, NULL), upload = NULL,
                uploads_before = NULL
            WHERE sequence = ?
            """, [now.milliseconds, sequence])
        try db.run("DELETE FROM transfer_part WHERE sequence = ?", [sequence])
    }

    func retryLater(_ attempt: TransferAttempt, at: Date?, _ failure: TransferFailure, now: Date) throws {
        let sequence = try sequence(attempt)
        try set(.pending, of: sequence)
        try db.run(
            "UPDATE transfer SET not_before = ?, not_before_set = ? WHERE sequence = ?",
            [at?.milliseconds, at.map { _ in now.milliseconds }, sequence])
        try note(failure, of: sequence)
    }

    func fail(_ sequence: Int64, _ failure: TransferFailure, now: Date) throws -> [UUID] {
        try set(.failed, of: sequence)
        try db.run("UPDATE transfer SET ended = ? WHERE sequence = ?", [now.milliseconds, sequence])
        try note(failure, of: sequence)
        return try setWaitingAside(
            sequence, "The transfer it waits for has failed: \(failure.message)", failure.code, now)
    }

    /// Has the uploads of a copied store fail: the original may have made the objects since, which may have become others
    /// by now, or goes on with the same parts. What is at the storage is the original's, and stays there.
    func distrustUploads(now: Date) throws {
        let failure = TransferFailure(
            code: TransferFailure.restored,
            message: "The store is a copy, and the original may have sent the file since; look whether the storage has "
                + "it, then retry or cancel the upload", time: now)
        let uploads = try db.rows(
            "SELECT sequence, state FROM transfer WHERE kind = \(kind: .upload) AND state IN "
                + "\(transfer: [.pending, .running, .paused, .failed]) ORDER BY sequence"
        ) { (sequence: try $0.integer(0), state: try TransferState(stored: $0.integer(1))) }
        for (sequence, state) in uploads {
            try note(.restart, of: sequence)
            if state != .failed { _ = try fail(sequence, failure, now: now) }
        }
    }

    func retry(_ id: UUID, _ source: FileIdentity?, _ expires: Date?) throws {
        let entry = try entry(id, in: [.failed])
        guard let transfer = try transfer(id) else { return }
        guard transfer.failure?.code != TransferFailure.damagedRow else {
            throw OperationsError(
                .wrongState, "The transfer's row was damaged, and parts of it are lost; cancel it, and queue it anew")
        }
        // Nothing that was sent of another file is of use. An upload that the storage still has keeps its name: its
        // parts are compared with the file before they are sent anew.
        if transfer.kind == .upload, let source, transfer.file?.isSame(as: source) != true {
            try db.run("DELETE FROM transfer_part WHERE sequence = ?", [entry.sequence])
            try db.run(
                """
                UPDATE transfer SET size = ?, device = ?, inode = ?, modified = ?, part_size = NULL, etag = NULL,
                    version = NULL, crc32c = NULL
                WHERE sequence = ?
                """, [source.size, source.device, source.inode, source.modified, entry.sequence])
        }
        try set(.pending, of: entry.sequence)
        try db.run(
            "UPDATE transfer SET ended = NULL, expires = ? WHERE sequence = ?", [expires?.milliseconds, entry.sequence])
        try QueueTransaction(db: db).replayWaiting(for: entry.sequence)
    }

    /// - Returns: The mutations that were set aside because of that.
    func cancel(_ sequence: Int64, now: Date) throws -> [UUID] {
        let hasTraces = try db.exists(
            """
            SELECT 1 FROM transfer WHERE sequence = ?
                AND (upload IS NOT NULL OR uploads_before IS NOT NULL OR kind = \(kind: .download) AND attempts > 0)
            """, [sequence])
        if hasTraces { try set(.cancelling, of: sequence) } else { try end(sequence, .cancelled, now: now) }
        return try setWaitingAside(sequence, "The transfer it waits for was cancelled", "transfer.cancelled", now)
    }

    /// Gives up all of a partition that are not done.
    ///
    /// - Parameter kind: Nil for both.
    /// - Returns: How many, and the mutations that were set aside because of that.
    @discardableResult
    func cancelAll(
        in partition: Int64, _ kind: TransferDraft.Kind? = nil, now: Date
    ) throws -> (count: Int, setAside: [UUID]) {
        let sequences = try db.integers(
            """
            SELECT sequence FROM transfer
            WHERE partition = ? AND state < \(transfer: .cancelling) AND ifnull(kind = ?, 1) ORDER BY sequence
            """, [partition, kind?.rawValue])
        let setAside = try sequences.flatMap { try cancel($0, now: now) }
        return (sequences.count, setAside)
    }

    /// See `TransferTable.erase`.
    func erase(in partition: Int64, keepsQueued: Bool, now: Date) throws -> (transfers: [UUID], setAside: [UUID]) {
        let ids = try db.rows("SELECT id FROM transfer WHERE partition = ?", [partition]) { try $0.uuid(0) }
        var setAside: [UUID] = []
        if !keepsQueued {
            let uploads = try unsentUploads(in: partition)
            guard uploads == 0 else {
                throw OperationsError(
                    .unsentWork,
                    "Meanwhile \(uploads.counted("upload")) joined the queue; send what waits, or say again what becomes of it",
                    unsent: .init(uploads: uploads))
            }
            setAside = try cancelAll(in: partition, now: now).setAside
            try db.run(
                "UPDATE transfer SET forgotten = 1 WHERE partition = ? AND state = \(transfer: .cancelling)",
                [partition])
        }
        try prune(keeping: 0, in: partition)
        try noteRemoval(in: partition)
        return (ids, setAside)
    }

    private func noteRemoval(in partition: Int64) throws {
        try db.run("UPDATE partition SET transfer_removals = transfer_removals + 1 WHERE id = ?", [partition])
    }

    /// Cancelling to cancelled, or to nothing where it is forgotten.
    func clear(_ entry: Entry, now: Date) throws {
        try end(entry.sequence, .cancelled, now: now)
        let isForgotten = try db.exists(
            """
            SELECT 1 FROM transfer WHERE sequence = ?1 AND forgotten = 1
                AND sequence NOT IN (SELECT transfer FROM mutation_transfer WHERE transfer = ?1)
            """, [entry.sequence])
        guard isForgotten else { return }
        try db.run("DELETE FROM transfer WHERE sequence = ?", [entry.sequence])
        try noteRemoval(in: entry.partition)
    }

    func prune(keeping count: Int, in partition: Int64) throws {
        try db.run(
            """
            DELETE FROM transfer WHERE sequence IN (
                SELECT sequence FROM transfer INDEXED BY transfer_end WHERE partition = ?1
                    AND state >= \(transfer: .done)
                ORDER BY ended DESC, sequence DESC LIMIT -1 OFFSET ?2)
                AND sequence NOT IN (SELECT transfer FROM mutation_transfer)
            """, [partition, max(0, count)])
    }

    /// How many uploads of a partition the storage may not have, failed ones included.
    func unsentUploads(in partition: Int64) throws -> Int {
        Int(
            try db.integer(
                """
                SELECT count(*) FROM transfer
                WHERE partition = ? AND kind = \(kind: .upload) AND state < \(transfer: .cancelling)
                """, [partition]) ?? 0)
    }

    private func setWaitingAside(
        _ sequence: Int64, _ message: String, _ code: String, _ now: Date
    ) throws -> [UUID] {
        let queue = QueueTransaction(db: db)
        let waiting = try db.rows(
            """
            SELECT m.sequence, m.id FROM mutation_transfer t JOIN mutation m ON m.sequence = t.sequence
            WHERE t.transfer = ? AND m.state = \(mutation: .pending) ORDER BY m.sequence
            """, [sequence]
        ) { (try $0.integer(0), try $0.uuid(1)) }
        let failure = MutationFailure(.transferFailed, code: code, message: message, time: now)
        for (mutation, _) in waiting { try queue.setAside(sequence: mutation, failure) }
        return waiting.map(\.1)
    }

    private func note(_ failure: TransferFailure, of sequence: Int64) throws {
        try db.run(
            "UPDATE transfer SET failure_code = ?, failure_message = ?, failure_time = ? WHERE sequence = ?",
            [failure.code, failure.message, failure.time.milliseconds, sequence])
    }
}
