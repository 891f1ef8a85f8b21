import Foundation
import GRDB

/// What is read and done to environments and partitions, inside one transaction: each call wholly, or it throws and
/// the caller rolls back.
struct EnvironmentTransaction {
    let db: Database
    /// See `EnvironmentTable.knowing`.
    var unnamed: String?

    func environments() throws -> [StoredEnvironment] {
        try db.rows("SELECT \(StoredEnvironment.columns) FROM environment e ORDER BY e.name") {
            try StoredEnvironment($0)
        }
    }

    func environment(_ name: String) throws -> StoredEnvironment? {
        try db.row("SELECT \(StoredEnvironment.columns) FROM environment e WHERE e.name = ?", [name]) {
            try StoredEnvironment($0)
        }
    }

    private static let partitionColumns = "\(StoredPartition.columns) FROM \(StoredPartition.tables)"

    /// In the order in which they were made.
    func partitions() throws -> [StoredPartition] {
        try db.rows("SELECT \(Self.partitionColumns) ORDER BY p.id") { try StoredPartition($0) }
    }

    func partition(_ name: String) throws -> StoredPartition? {
        try db.row("SELECT \(Self.partitionColumns) WHERE p.name = ?", [name]) { try StoredPartition($0) }
    }

    func partition(of environment: String, _ user: Destination.User) throws -> StoredPartition? {
        switch user {
        case .last:
            try current()?.partition.flatMap { $0.environment == environment ? $0 : nil } ?? db.row(
                """
                SELECT \(Self.partitionColumns) WHERE e.name = ? AND p.used IS NOT NULL
                ORDER BY p.used DESC, p.id DESC LIMIT 1
                """, [environment]
            ) { try StoredPartition($0) } ?? partition(of: environment, .guest)
        case .guest:
            try db.row("SELECT \(Self.partitionColumns) WHERE e.name = ? AND p.user IS NULL", [environment]) {
                try StoredPartition($0)
            }
        case .user(let id):
            try db.row("SELECT \(Self.partitionColumns) WHERE e.name = ? AND p.user = ?", [environment, id]) {
                try StoredPartition($0)
            }
        }
    }

    /// Nil where no environment was ever chosen.
    func current() throws -> CurrentPartition? {
        let found = try db.row(
            """
            SELECT p.name, c.number, c.switched FROM current_partition c LEFT JOIN partition p ON p.id = c.partition
            """
        ) { (try $0.optional(0, $0.text), try $0.integer(1), try $0.date(2)) }
        guard let (name, number, switched) = found else { return nil }
        return CurrentPartition(partition: try name.flatMap(partition), number: number, switched: switched)
    }

    // MARK: Definitions

    /// Whether an environment is stored just as a draft says.
    func isStored(_ draft: EnvironmentDraft) throws -> Bool {
        guard let stored = try environment(draft.name) else { return false }
        // Whether it takes its own place, the fingerprints tell.
        let hasFollowed =
            try draft.predecessor == .environment(draft.name) || draft.predecessor.map(hasFollowed) ?? true
        return hasFollowed && stored.definition == draft.definition && stored.fingerprints == draft.fingerprints
            && (stored.isProtected || !draft.isProtected)
    }

    private func hasFollowed(_ predecessor: EnvironmentDraft.Predecessor) throws -> Bool {
        switch predecessor {
        case .environment(let name):
            try !db.exists(
                "SELECT 1 FROM partition p JOIN environment e ON e.id = p.environment WHERE e.name = ?", [name])
        case .unnamed: try !db.exists("SELECT 1 FROM partition WHERE environment IS NULL") && rowlessUnnamed() == nil
        }
    }

    /// The partition of a program that named no environment, where it has a cache and no row.
    private func rowlessUnnamed() throws -> String? { try unnamed.flatMap { try partition($0) == nil ? $0 : nil } }

    /// Stores an environment, and makes it what its predecessor was.
    ///
    /// - Throws: `.environmentChanged` where another backend is stored under the name, and it is not said that this one
    ///   takes its place; `.occupied`.
    ///
    /// - Parameter mayUnprotect: Whether an environment that is protected may be so no more: not because a program says
    ///   nothing of it.
    func put(_ draft: EnvironmentDraft, mayUnprotect: Bool, now: Date) throws {
        if let stored = try environment(draft.name) {
            guard
                stored.fingerprints.data == draft.fingerprints.data
                    || draft.predecessor == .environment(draft.name)
            else {
                throw OperationsError(
                    .environmentChanged,
                    "The environment \(draft.name) is stored with another API; give the new one a "
                        + "name of its own, or say that it succeeds \(draft.name), whose data then is its own")
            }
            try db.run(
                """
                UPDATE environment SET definition = ?, identity = ?, data = ?, storage = ?, protected = ?, updated = ?
                WHERE name = ?
                """,
                [
                    draft.definition, draft.fingerprints.identity, draft.fingerprints.data, draft.fingerprints.storage,
                    draft.isProtected || (stored.isProtected && !mayUnprotect) ? 1 : 0, now.milliseconds, draft.name,
                ])
            if stored.fingerprints.identity != draft.fingerprints.identity {
                try endSessions(of: partitions().filter { $0.environment == draft.name }, now: now)
            }
        } else {
            try db.run(
                """
                INSERT INTO environment (name, definition, identity, data, storage, protected, created, updated)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    draft.name, draft.definition, draft.fingerprints.identity, draft.fingerprints.data,
                    draft.fingerprints.storage, draft.isProtected ? 1 : 0, now.milliseconds, now.milliseconds,
                ])
        }
        if let predecessor = draft.predecessor { try adopt(predecessor, by: draft, now: now) }
    }

    /// The service that signs users in now does not know the users who were signed in. Their credentials stay where
    /// they are, and cannot be opened any more.
    private func endSessions(of partitions: [StoredPartition], now: Date) throws {
        for partition in partitions {
            try db.run(
                """
                UPDATE session SET state = 'signedOut', reason = 'environmentChanged', changed = ?
                WHERE state <> 'guest' AND partition = (SELECT id FROM partition WHERE name = ?)
                """, [now.milliseconds, partition.name])
        }
    }

    /// Makes the partitions of one environment those of another.
    private func adopt(_ predecessor: EnvironmentDraft.Predecessor, by draft: EnvironmentDraft, now: Date) throws {
        let name = draft.name
        var old: StoredEnvironment?
        if case .environment(let predecessor) = predecessor {
            guard predecessor != name else { return }
            old = try environment(predecessor)
        }
        if predecessor == .unnamed, let name = try rowlessUnnamed() {
            try db.run("INSERT INTO partition (name) VALUES (?)", [name])
        }
        let adopted = try partitions().filter { partition in
            switch predecessor {
            case .environment(let name): partition.environment == name
            case .unnamed: partition.environment == nil
            }
        }
        do {
            for partition in adopted {
                try db.run(
                    "UPDATE partition SET environment = (SELECT id FROM environment WHERE name = ?) WHERE name = ?",
                    [name, partition.name])
            }
            if old?.fingerprints.identity != draft.fingerprints.identity { try endSessions(of: adopted, now: now) }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
            throw OperationsError(
                .occupied,
                "The environment \(name) has data of the same user already, and cannot take over another's; "
                    + "forget one of the two, or leave the predecessor out")
        }
    }

    /// Forgets what locates a backend. It must have no partition.
    ///
    /// - Throws: `.unknownEnvironment`; `.environmentInUse`.
    func remove(_ name: String) throws {
        guard try environment(name) != nil else { throw OperationsError.unknownEnvironment(name) }
        let partitions = try partitions().filter { $0.environment == name }
        if let current = try current()?.partition, current.environment == name {
            throw OperationsError(
                .environmentInUse, "The environment \(name) is the current one; switch to another, or to none, first")
        }
        guard partitions.isEmpty else {
            throw OperationsError(
                .environmentInUse,
                "The environment \(name) has data of \(partitions.count) users, or of guests; forget "
                    + "them first")
        }
        try db.run("DELETE FROM environment WHERE name = ?", [name])
    }
}

extension OperationsError {
    static func unknownEnvironment(_ name: String) -> OperationsError {
        OperationsError(.unknownEnvironment, "No environment is named \(name); add it first")
    }
}

extension StoredEnvironment {
    static let columns = "e.name, e.definition, e.identity, e.data, e.storage, e.protected, e.created, e.updated"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        name = try row.text(0)
        definition = try row.bytes(1)
        fingerprints = Fingerprints(identity: try row.text(2), data: try row.text(3), storage: try row.text(4))
        isProtected = try row.integer(5) == 1
        created = try row.date(6)
        updated = try row.date(7)
    }
}

extension StoredPartition {
    static let columns = "p.name, e.name, p.user, p.created, p.used"
    static let tables = "partition p LEFT JOIN environment e ON e.id = p.environment"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        name = try row.text(0)
        environment = try row.optional(1, row.text)
        user = try row.optional(2, row.text)
        created = try row.optional(3, row.date)
        used = try row.optional(4, row.date)
    }
}
