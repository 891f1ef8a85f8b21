import Foundation
import GRDB

extension EnvironmentTransaction {
    /// Makes a partition the current one, and stores its environment.
    ///
    /// - Parameter work: What becomes of the mutations of the one that is left; nil where none may be left.
    /// - Throws: `.otherPartition` where another is the current one and none may be left; `.unknownEnvironment`,
    ///   `.environmentChanged`, `.occupied`.
    func enter(_ destination: Destination, leaving work: PendingWork?, now: Date) throws -> SwitchReport {
        let name = try prepare(destination.environment, now: now)
        let current = try current()
        // After the environment was stored: it may have taken over the current one's data. Before any was chosen, a
        // program that names none works with the partition of none.
        if let old = try current == nil ? unnamedPartition() : current?.partition,
            try partition(of: name, destination.user)?.name != old.name
        {
            guard let work else { throw OperationsError.otherPartition(old) }
            return try switching(from: old, work, now: now) { try make(destination, name, now: now) }
        }
        let target = try make(destination, name, now: now)
        guard current?.partition == nil else {
            let work = try self.work(of: target)
            let side = SwitchReport.Side(partition: target, before: work, after: work)
            return SwitchReport(from: side, to: side, isSwitch: false)
        }
        return try switching(from: nil, .park, now: now) { target }
    }

    /// Leaves the current partition, and enters none.
    func leave(_ work: PendingWork, now: Date) throws -> SwitchReport {
        let current = try current()
        if let current, current.partition == nil { return SwitchReport(isSwitch: false) }
        // Where none was chosen yet, that there is to be none is noted all the same.
        let old = try current == nil ? unnamedPartition() : current?.partition
        var report = try switching(from: old, work, now: now) { nil }
        report.isSwitch = report.from != nil
        return report
    }

    private func unnamedPartition() throws -> StoredPartition? { try partitions().first { $0.environment == nil } }

    private func prepare(_ environment: Destination.Environment, now: Date) throws -> String {
        switch environment {
        case .stored(let name):
            guard try self.environment(name) != nil else { throw OperationsError.unknownEnvironment(name) }
            return name
        case .draft(let draft):
            if try !isStored(draft) { try put(draft, mayUnprotect: false, now: now) }
            return draft.name
        }
    }

    private func make(_ destination: Destination, _ environment: String, now: Date) throws -> StoredPartition {
        if let found = try partition(of: environment, destination.user) { return found }
        var user: String?
        if case .user(let id) = destination.user { user = id }
        try db.run(
            """
            INSERT INTO partition (name, environment, user, created)
            VALUES (?, (SELECT id FROM environment WHERE name = ?), ?, ?)
            """, [destination.newName, environment, user, now.milliseconds])
        return StoredPartition(name: destination.newName, environment: environment, user: user, created: now)
    }

    private func switching(
        from old: StoredPartition?, _ work: PendingWork, now: Date, _ entering: () throws -> StoredPartition?
    ) throws -> SwitchReport {
        let new = try entering()
        var report = SwitchReport(isSwitch: true)
        let before = (try old.map(self.work(of:)), try new.map(self.work(of:)))
        if let old {
            switch (work, new) {
            case (.carry, let new?): try carry(from: old.name, to: new.name, &report)
            case (.discard, _):
                guard let partition = try db.partition(old.name) else { break }
                report.discarded = try QueueTransaction(db: db).discardUnsent(in: partition, now: now)
                report.discardedTransfers = try TransferTransaction(db: db).cancelAll(in: partition, now: now).count
            case (.park, _), (.carry, nil): break
            }
        }
        try db.run(
            """
            INSERT INTO current_partition (only, partition, number, switched)
            VALUES (1, (SELECT id FROM partition WHERE name = ?), 1, ?)
            ON CONFLICT (only) DO UPDATE SET partition = excluded.partition, number = number + 1,
                switched = excluded.switched
            """, [new?.name, now.milliseconds])
        if let new {
            // Never before another's: the clock may have been set back, and the user who came last is entered again.
            try db.run(
                """
                UPDATE partition SET used = max(?1, ifnull((
                    SELECT max(used) + 1 FROM partition WHERE used < 9223372036854775807), ?1))
                WHERE name = ?2
                """, [now.milliseconds, new.name])
        }
        report.from = try old.map { try side($0, before.0) }
        report.to = try new.map { try side($0, before.1) }
        return report
    }

    private func side(_ partition: StoredPartition, _ before: SwitchReport.Work?) throws -> SwitchReport.Side {
        SwitchReport.Side(
            partition: try self.partition(partition.name) ?? partition, before: before ?? .init(),
            after: try work(of: partition))
    }

    private func work(of partition: StoredPartition) throws -> SwitchReport.Work {
        SwitchReport.Work(
            try QueueTransaction(db: db).counts(in: partition.name),
            transfers: try TransferTransaction(db: db).counts(in: partition.name))
    }

    // MARK: Pending work

    /// Moves the provably unsent mutations of one partition, and the transfers that were never begun, to another.
    ///
    /// These stay: mutations that wait, through however many others, for a mutation or a transfer that stays; mutations
    /// that come after one that stays and has its place in their lane; and transfers that a staying mutation waits for.
    private func carry(from old: String, to new: String, _ report: inout SwitchReport) throws {
        guard let source = try db.partition(old), let target = try db.partition(new) else { return }
        let isFresh = "t.state IN \(transfer: [.pending, .paused]) AND t.attempts = 0"
        // What has not left stays where another took effect, or is to, under its idempotency key.
        let staying = """
            WITH RECURSIVE staying (sequence) AS (
                SELECT m.sequence FROM mutation m WHERE m.partition = ?1 AND NOT \(ProvablyUnsent.condition("m"))
                UNION
                SELECT m.sequence FROM mutation m WHERE m.partition = ?1 AND m.idempotency_key IS NOT NULL AND (
                    EXISTS (SELECT 1 FROM mutation o
                        WHERE o.partition = ?2 AND o.idempotency_key = m.idempotency_key)
                    OR EXISTS (SELECT 1 FROM outcome o
                        WHERE o.partition = ?2 AND o.idempotency_key = m.idempotency_key
                            AND o.kind = \(outcome: .applied)))
                UNION
                SELECT w.sequence FROM mutation_transfer w JOIN transfer t ON t.sequence = w.transfer
                WHERE t.partition = ?1 AND NOT (\(isFresh))
                UNION
                SELECT d.sequence FROM mutation_dependency d JOIN staying s ON s.sequence = d.dependency
                UNION
                SELECT other.sequence
                    FROM mutation_transfer other JOIN mutation_transfer w ON w.transfer = other.transfer
                JOIN staying s ON s.sequence = w.sequence
                UNION
                SELECT later.sequence FROM staying s JOIN mutation m ON m.sequence = s.sequence
                JOIN mutation later ON later.sequence = (
                    SELECT min(sequence) FROM mutation INDEXED BY mutation_lane
                    WHERE partition = m.partition AND lane = m.lane AND queued = 1 AND sequence > m.sequence)
                WHERE m.queued = 1
            )
            """
        let moving = try db.integers(
            """
            \(staying) SELECT sequence FROM mutation
            WHERE partition = ?1 AND sequence NOT IN (SELECT sequence FROM staying) ORDER BY sequence
            """, [source, target])
        let transfers = try db.integers(
            """
            \(staying) SELECT t.sequence FROM transfer t WHERE t.partition = ?1 AND \(isFresh) AND t.sequence NOT IN (
                SELECT w.transfer FROM mutation_transfer w JOIN staying s ON s.sequence = w.sequence)
            """, [source, target])
        for sequence in transfers {
            try db.run("UPDATE transfer SET partition = ? WHERE sequence = ?", [target, sequence])
        }
        for sequence in moving {
            try db.run("UPDATE temporary_id SET partition = ? WHERE sequence = ?", [target, sequence])
            try db.run("UPDATE mutation SET partition = ? WHERE sequence = ?", [target, sequence])
        }
        try ForgottenOutcomes(db: db).note(carried: moving, from: old)
        report.carried = moving.count
        report.carriedTransfers = transfers.count
    }
}

extension OperationsError {
    fileprivate static func otherPartition(_ partition: StoredPartition) -> OperationsError {
        OperationsError(
            .otherPartition,
            "The current partition is that of \(partition.label); switch to the other one, and say what "
                + "becomes of what is pending here")
    }
}

extension StoredPartition {
    /// Its environment and user, for people.
    package var label: String {
        guard let environment else { return "no environment" }
        return "\(environment), \(user.map { "user \($0)" } ?? "guest")"
    }
}
