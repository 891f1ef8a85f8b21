package import LarderGraphQL
import LarderLMDB

/// Safe: keys and values are copied while the transaction lends them, and `put` copies what the arrays lend it.
extension Tables {
    /// How far a synchronization has come; nil where it never stored a page.
    func position(
        _ key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> SyncPosition? {
        guard let positions else { return nil }
        let key = Array(key.utf8)
        guard let value = try transaction.get(key.rawSpan, in: positions) else { return nil }
        let content = unsafe value.withUnsafeBytes { unsafe Self.content($0, under: key) }
        guard let position = content.flatMap({ SyncPosition($0) }) else { throw RecordError.damagedPosition }
        return position
    }

    func allPositions(
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [String: SyncPosition] {
        guard let positions else { return [:] }
        var found: [String: SyncPosition] = [:]
        var cursor = try transaction.cursor(in: positions)
        while let entry = try cursor.next() {
            let key = unsafe entry.key.withUnsafeBytes(Array.init)
            // Marks and subscriptions have keys with these, a synchronization's is hexadecimal.
            guard !key.contains(UInt8(ascii: "/")), !key.contains(UInt8(ascii: ":")) else { continue }
            let content = unsafe entry.value.withUnsafeBytes { unsafe Self.content($0, under: key) }
            guard let position = content.flatMap({ SyncPosition($0) }) else { throw RecordError.damagedPosition }
            found[String(decoding: key, as: UTF8.self)] = position
        }
        return found
    }

    /// The keys under which the marks of a walk are stored, and the cache keys that each has.
    func marks(
        of key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(row: [UInt8], content: [UInt8])] {
        try rows(beginningWith: key + "/", transaction)
    }

    /// The rows of `positions` whose keys begin with a text, and what each has.
    func rows(
        beginningWith prefix: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(row: [UInt8], content: [UInt8])] {
        guard let positions else { return [] }
        let prefix = Array(prefix.utf8)
        var found: [(row: [UInt8], content: [UInt8])] = []
        var cursor = try transaction.cursor(in: positions)
        var entry = try cursor.seek(atLeast: prefix.rawSpan)
        while let current = entry {
            let row = unsafe current.key.withUnsafeBytes(Array.init)
            guard row.starts(with: prefix) else { break }
            guard let content = unsafe current.value.withUnsafeBytes({ unsafe Self.content($0, under: row) }) else {
                throw RecordError.damagedPosition
            }
            found.append((row, content))
            entry = try cursor.next()
        }
        return found
    }

    /// What is stored under a key of `positions`; nil where it is not what was stored.
    static func content(_ bytes: UnsafeRawBufferPointer, under key: [UInt8]) -> [UInt8]? {
        guard unsafe SealedText.isSound(bytes, seed: seed(key)) else { return nil }
        return unsafe SealedText.text(bytes).map { unsafe Array($0) }
    }

    static func seed(_ key: [UInt8]) -> UInt64 { unsafe UInt64(key.withUnsafeBytes { unsafe checksum($0) }) }
}

extension RecordChanges {
    /// Notes how far a synchronization has come with a page, and marks what the page of a walk through everything has.
    mutating func note(
        _ page: SyncPage, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws {
        guard try generation.tables.position(page.key, transaction) == page.after else {
            throw RecordError.movedPosition(page.position)
        }
        // Marks of a walk that was given up.
        if page.number == 0 { try removeMarks(of: page.key, generation, transaction) }
        if let mark = page.mark {
            let digits = String(page.number, radix: 16)
            let row = page.key + "/" + String(repeating: "0", count: max(0, 8 - digits.count)) + digits
            positions[Array(row.utf8)] = mark.bytes
        }
        if page.number == 0, let now = page.position.lastUsed {
            for (key, position) in try generation.tables.allPositions(transaction)
            where key != page.key && position.lastUsed.map({ SubscriptionPosition.isForgotten($0, at: now) }) ?? false {
                positions[Array(key.utf8)] = .some(nil)
                try removeMarks(of: key, generation, transaction)
            }
        }
        positions[Array(page.key.utf8)] = page.position.json
    }

    mutating func removeMarks(
        of key: String, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws {
        for mark in try generation.tables.marks(of: key, transaction) { positions[mark.row] = .some(nil) }
    }

    /// Forgets a walk that has not reached its end.
    mutating func forgetWalk(
        of key: String, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws {
        guard var position = try generation.tables.position(key, transaction), position.walk != nil else { return }
        position.walk = nil
        positions[Array(key.utf8)] = position.json
        try removeMarks(of: key, generation, transaction)
    }

    /// Notes that types' objects were evicted: synchronizations of the types begin with everything.
    mutating func noteEvictions(_ generation: Generation, _ transaction: borrowing WriteTransaction) throws {
        guard !evictedTypes.isEmpty else { return }
        for (key, position) in try generation.tables.allPositions(transaction) {
            let isTouched = try position.types.contains { type in
                guard let id = try generation.names.lookUp(type, transaction, generation.tables) else { return false }
                return evictedTypes.contains(id)
            }
            if isTouched { try forget(position, of: key, generation, transaction) }
        }
    }

    /// Makes all synchronizations begin with everything.
    mutating func forgetPositions(_ generation: Generation, _ transaction: borrowing WriteTransaction) throws {
        for (key, position) in try generation.tables.allPositions(transaction) {
            try forget(position, of: key, generation, transaction)
        }
    }

    /// Makes a synchronization begin with everything. A walk under way is given up: something may be missing by now on
    /// the pages that it has behind it.
    private mutating func forget(
        _ position: SyncPosition, of key: String, _ generation: Generation, _ transaction: borrowing WriteTransaction
    ) throws {
        guard position.startedAt != nil || position.walk != nil else { return }
        var position = position
        (position.startedAt, position.walk, position.sweep) = (nil, nil, nil)
        positions[Array(key.utf8)] = position.json
        try removeMarks(of: key, generation, transaction)
    }

    func storePositions(_ tables: Tables, _ transaction: inout WriteTransaction) throws {
        guard !positions.isEmpty else { return }
        // Whatever is open for writing has the table.
        guard let table = tables.positions else { throw RecordError.damagedState }
        for (key, content) in positions {
            if let content {
                let sealed = SealedText.encoded(content, seed: Tables.seed(key))
                try transaction.put(key.rawSpan, sealed.rawSpan, in: table)
            } else {
                try transaction.delete(key.rawSpan, in: table)
            }
        }
    }
}

extension ParsedResponse {
    /// The leaf to which these response keys lead from the root; nil where there is none, or it is a list.
    package func leaf(at path: [String]) -> Value? {
        guard let cell = cell(at: path) else { return nil }
        switch cell.kind {
        case .null: return .null
        case .int: return .int(Int64(bitPattern: cell.payload))
        case .string: return unsafe .string(String(decoding: text(cell), as: UTF8.self))
        default: return nil
        }
    }

    /// How many elements the list has to which these response keys lead from the root; nil where it is none.
    package func elementCount(at path: [String]) -> Int? {
        guard let cell = cell(at: path), cell.kind == .list else { return nil }
        return Int(cell.count)
    }

    private func cell(at path: [String]) -> ParsedCell? {
        guard var cell = root.map({ ParsedCell(.object, payload: UInt64($0)) }) else { return nil }
        for name in path {
            guard cell.kind == .object,
                let field = objects[cell.offset].fields.first(where: {
                    layout.plan.fields[Int(fields[$0].field)].responseKey == name
                })
            else { return nil }
            cell = fields[field].cell
        }
        return cell
    }
}

extension PayloadView {
    /// A whole number; nil where the value is none.
    func integer(_ word: ValueWord) throws(DamagedRecord) -> Int64? {
        switch word.tag {
        case .smallInt: word.smallInt
        case .int: Int64(bitPattern: try eightBytes(word))
        default: nil
        }
    }
}

extension RecordError {
    static func movedPosition(_ position: SyncPosition) -> RecordError {
        RecordError(
            .busy,
            "The position of \(position.name) was moved while a page of it came, by another process or by an eviction; "
                + "synchronize again")
    }

    static var damagedPosition: RecordError {
        RecordError(
            .damaged,
            "A position of a synchronization or subscription is damaged; remove the cache and fetch again")
    }
}
