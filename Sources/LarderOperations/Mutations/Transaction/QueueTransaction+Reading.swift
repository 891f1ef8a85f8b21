import Foundation
import GRDB

extension QueueTransaction {
    static let selection = "SELECT \(columns) FROM \(tables)"

    static let columns = """
        m.sequence, m.id, p.name, m.lane, m.state, m.stalled, m.idempotency_key, m.created, m.expires,
            m.not_before, m.attempts, m.owner, c.document, c.operation_name, c.variables, c.optimistic_response,
            c.list_edits, c.updater, c.resolver, c.check_query, a.answer, f.class, f.code, f.message, f.details, f.time,
            (SELECT group_concat(hex(x.id)) FROM mutation_dependency d JOIN mutation x ON x.sequence = d.dependency
                WHERE d.sequence = m.sequence),
            (SELECT group_concat(t.token) FROM temporary_id t WHERE t.sequence = m.sequence),
            (SELECT group_concat(hex(x.id)) FROM mutation_transfer w JOIN transfer x ON x.sequence = w.transfer
                WHERE w.sequence = m.sequence),
            m.touched, m.telling, m.doubt
        """
    static let tables = """
        mutation m
        JOIN partition p ON p.id = m.partition
        LEFT JOIN mutation_content c ON c.sequence = m.sequence
        LEFT JOIN mutation_answer a ON a.sequence = m.sequence
        LEFT JOIN mutation_failure f ON f.sequence = m.sequence
        """

    static let mutationSQL = selection + " WHERE m.id = ?"

    func mutation(_ id: UUID) throws -> Mutation? {
        try db.row(Self.mutationSQL, [id]) { try Mutation($0) }
    }

    /// How many of a partition are in each state.
    func counts(in partition: String) throws -> [MutationState: Int] {
        let counts = try db.readableRows(
            """
            SELECT state, count(*) FROM mutation WHERE partition = (SELECT id FROM partition WHERE name = ?)
            GROUP BY state
            """, [partition]
        ) { (try MutationState(stored: $0.integer(0)), Int(try $0.integer(1))) }
        return Dictionary(counts, uniquingKeysWith: +)
    }

    /// How many of a partition are in each state, by lane.
    func laneCounts(in partition: String) throws -> [String: [MutationState: Int]] {
        let counts = try db.readableRows(
            """
            SELECT lane, state, count(*) FROM mutation WHERE partition = (SELECT id FROM partition WHERE name = ?)
            GROUP BY lane, state
            """, [partition]
        ) { (try $0.text(0), try MutationState(stored: $0.integer(1)), Int(try $0.integer(2))) }
        return counts.reduce(into: [:]) { $0[$1.0, default: [:]][$1.1] = $1.2 }
    }

    /// The mutations of a partition that are set aside, in their sequence.
    func deadLetters(in partition: String) throws -> [SetAside] {
        try db.readableRows(
            """
            SELECT m.id, m.attempts, f.time FROM mutation m LEFT JOIN mutation_failure f ON f.sequence = m.sequence
            WHERE m.partition = (SELECT id FROM partition WHERE name = ?)
            AND m.state = \(mutation: .deadLetter) ORDER BY m.sequence
            """, [partition]
        ) { SetAside(id: try $0.uuid(0), attempts: try $0.integer(1), time: try $0.optional(2, $0.integer)) }
    }

    func outcome(_ id: UUID) throws -> Outcome? {
        try db.row("SELECT \(Outcome.columns) FROM \(Outcome.tables) WHERE o.id = ?", [id]) { try Outcome($0) }
    }

    func list(_ filter: MutationFilter, after: Int64, limit: Int, isStrict: Bool) throws -> [Mutation] {
        var conditions = ["m.sequence > ?"]
        var bindings: Bindings = [after]
        if let name = filter.partition {
            guard let partition = try db.partition(name) else { return [] }
            conditions.append("m.partition = ?")
            bindings += [partition]
        }
        if let states = filter.states {
            conditions.append("m.state IN \(mutation: states)")
            // So says the index.
            if !states.isEmpty, states.isDisjoint(with: [.pending, .inFlight]) {
                conditions.append("m.state >= \(mutation: .acknowledged)")
            }
        }
        if let lane = filter.lane {
            conditions.append("m.lane = ?")
            bindings += [lane]
        }
        bindings += [Int64(max(0, limit))]
        let sql = Self.selection + " WHERE \(conditions.joined(separator: " AND ")) ORDER BY m.sequence LIMIT ?"
        return try isStrict
            ? db.rows(sql, bindings) { try Mutation($0) } : db.readableRows(sql, bindings) { try Mutation($0) }
    }

    /// In their sequence. What they show is read where it is not known what that touches.
    func expectations(in partition: Int64) throws -> [Expectation] {
        let known = try db.readableRows(
            """
            SELECT sequence, id, idempotency_key, touched FROM mutation
            WHERE partition = ? AND state < \(mutation: .deadLetter) AND touched <> x'' ORDER BY sequence
            """, [partition]
        ) { row in
            let id = try row.uuid(1)
            return Expectation(
                sequence: try row.integer(0), id: id,
                idempotencyKey: try row.optional(2, row.text) ?? id.canonicalText, touched: try row.bytes(3),
                content: nil)
        }
        let others = try expectations(
            """
            m.partition = ? AND \(Self.isShown) AND m.touched IS NULL
                AND (c.optimistic_response IS NOT NULL OR c.list_edits IS NOT NULL) ORDER BY m.sequence
            """, [partition])
        if known.isEmpty { return others }
        return others.isEmpty ? known : (known + others).sorted { $0.sequence < $1.sequence }
    }

    /// What is set aside shows nothing.
    private static let isShown = "m.state < \(mutation: .deadLetter)"

    /// What mutations show now, in their sequence, without mutations that are settled or set aside.
    func expectations(of sequences: [Int64]) throws -> [Expectation] {
        let numbers = Set(sequences)
        guard let first = numbers.min(), let last = numbers.max() else { return [] }
        // Where they are many, a look at all that lie between is quicker than at each by itself.
        let (distance, overflows) = last.subtractingReportingOverflow(first)
        if !overflows, distance < Int64(numbers.count) * 8 {
            return try expectations(
                "\(Self.isShown) AND m.sequence BETWEEN ? AND ? ORDER BY m.sequence", [first, last]
            ).filter { numbers.contains($0.sequence) }
        }
        return try numbers.sorted().flatMap { try expectations("\(Self.isShown) AND m.sequence = ?", [$0]) }
    }

    private func expectations(_ condition: String, _ bindings: Bindings) throws -> [Expectation] {
        // Most share their documents.
        var documents: [String: String] = [:]
        return try db.readableRows(
            """
            SELECT m.sequence, m.id, m.idempotency_key, c.document, c.operation_name, c.variables,
                c.optimistic_response, c.list_edits, c.updater, m.touched
            FROM mutation m JOIN mutation_content c ON c.sequence = m.sequence WHERE \(condition)
            """, bindings
        ) { row in
            let id = try row.uuid(1)
            let text = try row.text(3)
            let document = documents[text] ?? text
            documents[document] = document
            return Expectation(
                sequence: try row.integer(0), id: id,
                idempotencyKey: try row.optional(2, row.text) ?? id.canonicalText,
                touched: try row.optional(9, row.bytes),
                content: MutationContent(
                    document: document, operationName: try row.optional(4, row.text), variables: try row.bytes(5),
                    optimisticResponse: try row.optional(6, row.bytes), listEdits: try row.optional(7, row.bytes),
                    updater: try row.optional(8, row.text)))
        }
    }

    func hasUnsent(in partition: Int64) throws -> Bool {
        // Whatever is stalled waits for a dead letter, which is found.
        try hasQueued(in: partition) || hasDone(.deadLetter, in: partition)
    }

    func hasMoving(in partition: Int64) throws -> Bool {
        try hasQueued(in: partition) || hasDone(.acknowledged, in: partition)
    }

    private func hasQueued(in partition: Int64) throws -> Bool {
        try db.exists(
            "SELECT 1 FROM mutation INDEXED BY mutation_lane WHERE partition = ? AND queued = 1 LIMIT 1", [partition])
    }

    private func hasDone(_ state: MutationState, in partition: Int64) throws -> Bool {
        try db.exists(
            """
            SELECT 1 FROM mutation INDEXED BY mutation_done WHERE partition = ?
                AND state >= \(mutation: .acknowledged) AND state = ? LIMIT 1
            """, [partition, state.rawValue])
    }
}

extension Mutation {
    /// From `QueueTransaction.columns`.
    init(_ row: Columns) throws(OperationsError) {
        guard !row.isNull(12) else { throw .damagedRow("a mutation has no content") }
        id = try row.uuid(1)
        sequence = try row.integer(0)
        partition = try row.text(2)
        lane = try row.text(3)
        state = try MutationState(stored: row.integer(4))
        isStalled = try row.integer(5) == 1
        idempotencyKey = try row.optional(6, row.text) ?? id.canonicalText
        created = try row.date(7)
        expires = try row.optional(8, row.date)
        notBefore = try row.optional(9, row.date)
        attempts = try row.count(10)
        owner = try row.optional(11, row.text)
        content = MutationContent(
            document: try row.text(12), operationName: try row.optional(13, row.text), variables: try row.json(14),
            optimisticResponse: try row.optional(15, row.bytes), listEdits: try row.optional(16, row.bytes),
            updater: try row.optional(17, row.text), resolver: try row.optional(18, row.text),
            checkQuery: try row.optional(19, row.text))
        answer = try row.optional(20, row.bytes)
        failure =
            try row.isNull(21)
            ? nil
            : MutationFailure(
                .init(rawValue: row.text(21)), code: row.optional(22, row.text), message: row.text(23),
                details: row.optional(24, row.bytes), time: row.date(25))
        dependencies = try row.optional(26, row.ids) ?? []
        transfers = try row.optional(28, row.ids) ?? []
        let tokens = try row.optional(27, row.text)?.split(separator: ",") ?? []
        temporaryIDs = tokens.compactMap { TemporaryID(String($0)) }
        temporaryIDs.sort { $0.text < $1.text }
        touched = try row.optional(29, row.bytes)
        telling = try row.optional(30, row.text).map(KeyDelivery.init)
        doubt = try row.optional(31, row.text).map(KeyDelivery.init)
    }
}

extension Outcome {
    static let columns = "o.id, p.name, o.sequence, o.kind, o.settled, o.result, o.class, o.code, o.message, o.errors"
    static let tables = "outcome o JOIN partition p ON p.id = o.partition"

    /// From `Outcome.columns`.
    init(_ row: Columns) throws(OperationsError) {
        let kind = try Kind(stored: row.integer(3))
        let settled = try row.date(4)
        self.init(
            mutation: try row.uuid(0), partition: try row.text(1), sequence: try row.integer(2), kind: kind,
            settled: settled, result: try row.optional(5, row.json), errors: try row.optional(9, row.json))
        failure =
            try row.isNull(6)
            ? nil
            : MutationFailure(
                .init(rawValue: row.text(6)), code: row.optional(7, row.text), message: row.text(8), time: settled)
    }
}

extension UUID {
    /// In small letters: the key by which a server tells a repeat, unless there is another.
    var canonicalText: String {
        String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            withUnsafeBytes(of: uuid) { bytes in
                for (index, byte) in bytes.enumerated() {
                    if [4, 6, 8, 10].contains(index) {
                        text[place] = UInt8(ascii: "-")
                        place += 1
                    }
                    for digit in [byte >> 4, byte & 15] {
                        text[place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                        place += 1
                    }
                }
            }
            return place
        }
    }

    fileprivate init(hexadecimal text: Substring) throws(OperationsError) {
        let digits = Array(text.utf8)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
        guard let uuid = UUID(bytes: bytes) else { throw .damagedRow("an id is none") }
        self = uuid
    }
}

extension Columns {
    /// What `group_concat(hex(id))` gives.
    fileprivate func ids(_ index: Int32) throws(OperationsError) -> [UUID] {
        var ids: [UUID] = []
        for digits in try text(index).split(separator: ",") { ids.append(try UUID(hexadecimal: digits)) }
        return ids
    }
}
