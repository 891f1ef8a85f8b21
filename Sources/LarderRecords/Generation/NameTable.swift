internal import LarderLMDB
internal import Synchronization

/// The numbers of field keys and type names, as far as this process has met them in committed transactions.
///
/// Numbers are given by the writer and never used again, so that what is known here stays true.
final class NameTable: Sendable {
    private struct Known {
        var numbers: [StoredName: FieldID] = [:]
        var names: [FieldID: String] = [:]
    }

    /// More names than this are looked up in LMDB each time: arguments make them unbounded.
    private static let limit = 100_000

    private let known = Mutex(Known())

    /// The name's number, or nil where the snapshot does not have it.
    func number(
        of name: String, _ transaction: borrowing some Transaction & ~Copyable, _ tables: Tables
    ) throws -> FieldID? {
        if let number = known.withLock({ $0.numbers[StoredName(name)] }) { return number }
        let number = try lookUp(name, transaction, tables)
        if let number { learn([StoredName(name): number]) }
        return number
    }

    /// As `number(of:)`, but for a write transaction, which may see what will never be committed.
    func lookUp(
        _ name: String, _ transaction: borrowing some Transaction & ~Copyable, _ tables: Tables
    ) throws -> FieldID? {
        if let number = known.withLock({ $0.numbers[StoredName(name)] }) { return number }
        let key = StoredKey.bytes(Array(name.utf8))
        guard let stored = try transaction.get(key.span.bytes, in: tables.names) else { return nil }
        guard stored.byteCount == 4 else {
            throw RecordError(.damaged, "the number of the field \(name.prefix(80)) is damaged")
        }
        return FieldID(littleEndian: stored.withUnsafeBytes { $0.loadUnaligned(as: FieldID.self) })
    }

    /// The name of a number, or nil where the snapshot does not have it.
    func lookUpName(
        of number: FieldID, _ transaction: borrowing some Transaction & ~Copyable, _ tables: Tables
    ) throws -> String? {
        if let name = known.withLock({ $0.names[number] }) { return name }
        guard let stored = try transaction.get(UInt64(number), in: tables.texts) else { return nil }
        return stored.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    func name(
        of number: FieldID, _ transaction: borrowing some Transaction & ~Copyable, _ tables: Tables
    ) throws -> String? {
        let name = try lookUpName(of: number, transaction, tables)
        if let name { learn([StoredName(name): number]) }
        return name
    }

    /// Takes in numbers that a commit has made true.
    func learn(_ numbers: [StoredName: FieldID]) {
        guard !numbers.isEmpty else { return }
        known.withLock { known in
            guard known.numbers.count + numbers.count <= Self.limit else { return }
            for (name, number) in numbers {
                known.numbers[name] = number
                known.names[number] = name.text
            }
        }
    }
}
