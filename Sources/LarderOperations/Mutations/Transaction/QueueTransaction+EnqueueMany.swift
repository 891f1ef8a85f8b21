import Foundation
import GRDB

/// Many mutations in few statements: to run one takes longer than to write its row.
extension QueueTransaction {
    /// Adds mutations at the end of the order, in theirs.
    ///
    /// - Parameter mayHoldIDs: `MutationDraft.mayHoldTemporaryIDs` of each.
    /// - Throws: As for one, for the first that cannot be added.
    func enqueue(_ drafts: [MutationDraft], mayHoldIDs: [Bool]) throws -> [Mutation] {
        var partitions: [String: Int64] = [:]
        var mutations: [Mutation] = []
        mutations.reserveCapacity(drafts.count)
        /// The drafts that go together, at most as many as one statement takes.
        var plain: [(draft: MutationDraft, partition: Int64)] = []
        plain.reserveCapacity(Self.rowCount)
        for (draft, mayHoldIDs) in zip(drafts, mayHoldIDs) {
            let partition = try partitions[draft.partition] ?? db.usablePartition(making: draft.partition)
            partitions[draft.partition] = partition
            if !mayHoldIDs, draft.isPlain {
                plain.append((draft, partition))
                if plain.count == Self.rowCount { try mutations.append(contentsOf: add(&plain)) }
            } else {
                try mutations.append(contentsOf: add(&plain))
                mutations.append(try enqueue(draft, in: partition, mayHoldIDs: mayHoldIDs))
            }
        }
        try mutations.append(contentsOf: add(&plain))
        return mutations
    }

    /// Adds the waiting drafts, and takes them out.
    private func add(_ plain: inout [(draft: MutationDraft, partition: Int64)]) throws -> [Mutation] {
        defer { plain.removeAll(keepingCapacity: true) }
        if plain.count == Self.rowCount, let mutations = try addTogether(plain) { return mutations }
        return try plain.map { try enqueue($0.draft, in: $0.partition, mayHoldIDs: false) }
    }

    /// Nil, and nothing added, where one of them is there already: each by itself then says which.
    ///
    /// - Throws: `.duplicate` for the first that is settled.
    private func addTogether(_ plain: [(draft: MutationDraft, partition: Int64)]) throws -> [Mutation]? {
        let last = try db.integer(Self.lastSequenceSQL) ?? 0
        let (end, isPastAll) = last.addingReportingOverflow(Int64(plain.count))
        guard !isPastAll else { return nil }
        let touched = plain.map { $0.draft.content.touched($0.draft) }
        do {
            try db.run(Self.insertionSQL) { row in
                for (sequence, (entry, touched)) in zip((last + 1)...end, zip(plain, touched)) {
                    row.bind(sequence)
                    row.bind(entry.draft.id)
                    row.bind(entry.partition)
                    row.bind(entry.draft.lane)
                    row.bind(entry.draft.created.milliseconds)
                    row.bind(entry.draft.expires?.milliseconds)
                    row.bind(touched)
                }
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            // The statement has undone what it did.
            return nil
        }
        guard db.changesCount == plain.count else {
            for entry in plain { try requireUnsettled(entry.draft.id) }
            throw OperationsError(.storage, "Some of many mutations were not added, and none of them is settled")
        }
        try db.run(Self.contentSQL) { row in
            for (sequence, entry) in zip((last + 1)...end, plain) { row.bind(sequence, entry.draft.content) }
        }
        return zip((last + 1)...end, zip(plain, touched)).map { sequence, entry in
            Mutation(entry.0.draft, sequence: sequence, touched: entry.1)
        }
    }

    /// No sequence is used again, and no row has a greater one than was given last.
    private static let lastSequenceSQL = "SELECT seq FROM sqlite_sequence WHERE name = 'mutation'"
    private static let insertionSQL = """
        INSERT INTO mutation (sequence, id, partition, lane, created, expires, touched, state, stalled, queued,
            attempts)
        SELECT column1, column2, column3, column4, column5, column6, column7, \(mutation: .pending), 0, 1, 0
        FROM (VALUES \(rows("(?, ?, ?, ?, ?, ?, ?)"))) AS given
        WHERE NOT EXISTS (SELECT 1 FROM outcome WHERE id = column2)
        """
    private static let contentSQL = contentInsertionSQL + rows(contentRow)

    /// Rows of one statement, where there are many. With more of them each takes as long as with so many.
    static let rowCount = 25

    static func rows(_ row: String, count: Int = rowCount) -> String {
        repeatElement(row, count: count).joined(separator: ", ")
    }
}

extension MutationDraft {
    /// Whether it refers to nothing that would have to be looked up, temporary ids aside.
    fileprivate var isPlain: Bool { dependencies.isEmpty && transfers.isEmpty && idempotencyKey == nil }
}
