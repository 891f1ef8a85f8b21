import Foundation
import GRDB

/// Content in which known temporary ids are replaced, and what it holds of others.
struct ResolvedContent {
    var content: MutationContent
    var lane: String
    /// The temporary ids without a real one, its own included.
    var uses: Set<TemporaryID> = []
    /// The mutations that reserved them.
    var dependencies: [Int64: Dependency] = [:]
}

extension QueueTransaction {
    /// Replaces the temporary ids whose real ones are known, and says what the others need.
    ///
    /// - Parameter own: The ids that the mutation itself reserves.
    /// - Throws: `.unknownTemporaryID`.
    func resolve(
        _ content: MutationContent, lane: String, partition: Int64, own: Set<TemporaryID>
    ) throws -> ResolvedContent {
        var resolved = ResolvedContent(content: content, lane: lane)
        var (uses, dependencies) = (Set<TemporaryID>(), [Int64: Dependency]())
        try resolved.replace(sparing: own) { id in
            switch own.contains(id) ? try known(id, partition) : try meaning(of: id, partition) {
            case nil:
                uses.insert(id)
                return nil
            case .real(let text): return text
            case .awaited(let dependency):
                uses.insert(id)
                dependencies[dependency.sequence] = dependency
                return nil
            }
        }
        resolved.uses = uses
        resolved.dependencies = dependencies
        return resolved
    }

    private enum Meaning {
        case real(String)
        case awaited(Dependency)
    }

    /// What one's own id stands for; nil if that is not known yet, or it is yet to be reserved.
    private func known(_ id: TemporaryID, _ partition: Int64) throws -> Meaning? {
        try db.texts(
            "SELECT real FROM temporary_id WHERE token = ? AND partition = ? AND real IS NOT NULL",
            [id.text, partition]
        ).first.map(Meaning.real)
    }

    private func meaning(of id: TemporaryID, _ partition: Int64) throws -> Meaning {
        let meaning = try db.row(
            """
            SELECT m.sequence, t.real, m.state, m.stalled, m.id FROM temporary_id t
            LEFT JOIN mutation m ON m.sequence = t.sequence
            WHERE t.token = ? AND t.partition = ?
            """, [id.text, partition]
        ) { row in
            if let real = try row.optional(1, row.text) { return Meaning.real(real) }
            return .awaited(try Dependency(id: row.uuid(4), row))
        }
        guard let meaning else {
            throw OperationsError(
                .unknownTemporaryID,
                "No mutation of this partition reserved \(id.text), or it was discarded; "
                    + "use the object's real id")
        }
        return meaning
    }

    func reserve(_ id: TemporaryID, for sequence: Int64, _ partition: Int64) throws {
        do {
            try db.run(
                "INSERT INTO temporary_id (token, partition, sequence) VALUES (?, ?, ?)",
                [id.text, partition, sequence])
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            throw OperationsError(.duplicate, "\(id.text) is reserved already; make a new one for each object")
        }
    }

    func addUse(of id: TemporaryID, by sequence: Int64) throws {
        try db.run("INSERT OR IGNORE INTO temporary_id_use (token, sequence) VALUES (?, ?)", [id.text, sequence])
    }

    /// Whether a mutation has reserved any, with or without a real one.
    func hasReserved(_ sequence: Int64) throws -> Bool {
        try db.exists(
            "SELECT 1 FROM temporary_id INDEXED BY temporary_id_reserver WHERE sequence = ? LIMIT 1", [sequence])
    }

    /// Puts the real ids that an answer gave in the places of the ids that its mutation reserved, in all rows. Rows
    /// with an id for which no answer gave any are set aside: the server would not know it.
    func resolveReserved(by id: UUID, _ sequence: Int64, to real: [TemporaryID: String], now: Date) throws {
        let tokens = try db.texts(
            "SELECT token FROM temporary_id INDEXED BY temporary_id_reserver WHERE sequence = ?", [sequence])
        let reserved = Set(tokens.compactMap(TemporaryID.init(_:)))
        guard real.keys.allSatisfy(reserved.contains), real.values.allSatisfy({ !$0.isEmpty }) else {
            throw OperationsError(
                .invalid, "The answer gives an id for what this mutation did not reserve; is it another's?",
                mutation: id)
        }
        guard !reserved.isEmpty else { return }
        // It was answered before, set aside and replayed.
        let answered = Set(
            try db.texts(
                "SELECT token FROM temporary_id WHERE sequence = ? AND real IS NOT NULL", [sequence]
            ).compactMap(TemporaryID.init(_:)))
        var changed: Set<Int64> = []
        for id in reserved {
            guard let text = real[id] else { continue }
            try db.run(
                "UPDATE temporary_id SET real = ?, resolved = ? WHERE token = ?", [text, now.milliseconds, id.text])
            changed.formUnion(try users(of: id))
            try db.run("DELETE FROM temporary_id_use WHERE token = ?", [id.text])
        }
        for user in changed.sorted() { try rewrite(user, sparing: user == sequence ? reserved : [], real) }
        for id in reserved where real[id] == nil && !answered.contains(id) {
            try lose(id, reservedBy: sequence, now: now)
        }
    }

    /// Sets aside the mutations that hold a temporary id for which there will be no real one, and forgets the id. A
    /// dead letter keeps the reason that it has.
    func lose(_ id: TemporaryID, reservedBy sequence: Int64, now: Date) throws {
        let users = try users(of: id)
        try db.run("DELETE FROM temporary_id WHERE token = ?", [id.text])
        for user in users where user != sequence {
            let isSetAside = try db.exists(
                "SELECT 1 FROM mutation WHERE sequence = ? AND state = \(mutation: .deadLetter)", [user])
            if isSetAside { continue }
            let failure = MutationFailure(
                .temporaryIDLost,
                message: "The mutation holds \(id.text), for which there is no real id; edit its variables",
                time: now)
            try setAside(sequence: user, failure)
        }
    }

    private func users(of id: TemporaryID) throws -> [Int64] {
        try db.integers("SELECT sequence FROM temporary_id_use WHERE token = ? ORDER BY sequence", [id.text])
    }

    func rewrite(_ sequence: Int64, sparing own: Set<TemporaryID>, _ real: [TemporaryID: String]) throws {
        let found = try db.row(
            """
            SELECT c.variables, c.optimistic_response, c.list_edits, m.lane
            FROM mutation m JOIN mutation_content c ON c.sequence = m.sequence WHERE m.sequence = ?
            """, [sequence]
        ) { row in
            ResolvedContent(
                content: MutationContent(
                    document: "", variables: try row.bytes(0), optimisticResponse: try row.optional(1, row.bytes),
                    listEdits: try row.optional(2, row.bytes)),
                lane: try row.text(3))
        }
        guard let old = found else { return }
        var new = old
        try new.replace(sparing: own) { real[$0] }
        if new.content != old.content {
            try db.run(
                """
                UPDATE mutation_content SET variables = ?, optimistic_response = ?, list_edits = ? WHERE sequence = ?
                """,
                [new.content.variables, new.content.optimisticResponse, new.content.listEdits, sequence])
            try forgetTouched(by: sequence)
        }
        if new.lane != old.lane {
            try db.run("UPDATE mutation SET lane = ? WHERE sequence = ?", [new.lane, sequence])
        }
    }
}

extension ResolvedContent {
    /// - Parameter own: The ids that the mutation itself reserves. In its variables they stay: that is what was sent,
    ///   and what a repeat must say.
    mutating func replace(sparing own: Set<TemporaryID>, _ replacement: TemporaryIDText.Replacement) throws {
        content.variables = try TemporaryIDText.replace(inJSON: content.variables) { id in
            let real = try replacement(id)
            return own.contains(id) ? nil : real
        }
        content.optimisticResponse = try content.optimisticResponse.map {
            try TemporaryIDText.replace(inJSON: $0, replacement)
        }
        content.listEdits = try content.listEdits.map { try TemporaryIDText.replace(inJSON: $0, replacement) }
        lane = try TemporaryIDText.replace(inText: lane, replacement)
    }
}
