import LarderFiles
import LarderGraphQL
import LarderLMDB

/// The numbers of field keys and type names, as far as this process has met them in committed transactions.
///
/// Numbers are given by the writer and never used again, so that what is known here stays true.
///
/// Safe: numbers and names are taken out of the transaction's bytes while it lends them.
final class NameTable: Sendable {
    private struct Known {
        var numbers = RecentlyUsed<ExactText, FieldID>(limit: NameTable.limit)
        /// Of the same names.
        var names: [FieldID: ExactText] = [:]

        mutating func learn(_ name: ExactText, _ number: FieldID) {
            names[number] = name
            let size = name.text.utf8.count + NameTable.entrySize
            for (_, gone) in numbers.keep(number, for: name, size: size) { names[gone] = nil }
        }
    }

    /// In bytes. Arguments make names unbounded; the least recently used ones are looked up in LMDB again.
    static let limit = 16 << 20
    /// About what two dictionaries take for one name.
    private static let entrySize = 128

    private let known = Locked(Known())

    /// The name's number, or nil where the snapshot does not have it.
    func number(
        of name: String, _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> FieldID? {
        let exact = ExactText(name)
        if let number = transaction.overlay?.field(of: exact) { return number }
        if let number = known.withLock({ $0.numbers.value(for: exact) }) { return number }
        let number = try lookUp(name, transaction, tables)
        if let number { learn([exact: number]) }
        return number
    }

    /// As `number(of:)`, but for a write transaction, which may see what will never be committed.
    func lookUp(
        _ name: String, _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> FieldID? {
        let exact = ExactText(name)
        // First: the snapshot may be older than what is known, and its layers have a number of their own.
        if let number = transaction.overlay?.field(of: exact) { return number }
        if let number = known.withLock({ $0.numbers.value(for: exact) }) { return number }
        let key = StoredKey.bytes(Array(name.utf8))
        guard let stored = try transaction.get(key.rawSpan, in: tables.names) else {
            transaction.overlay?.missed(exact)
            return nil
        }
        guard let number = unsafe stored.withUnsafeBytes(StoredNumber.number).flatMap(FieldID.init(exactly:)) else {
            throw RecordError(.damaged, "The number of the field \(name.prefix(80)) is damaged")
        }
        return number
    }

    /// The name of a number, or nil where the snapshot does not have it.
    func lookUpName(
        of number: FieldID, _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> String? {
        if number >= OverlayNumbers.firstField { return transaction.overlay?.name(of: number) }
        if let name = known.withLock({ $0.names[number] }) { return name.text }
        guard let stored = try transaction.get(UInt64(number), in: tables.texts) else { return nil }
        return unsafe stored.withUnsafeBytes {
            unsafe SealedText.text($0).map { unsafe String(decoding: $0, as: UTF8.self) }
        }
    }

    func name(
        of number: FieldID, _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> String? {
        let name = try lookUpName(of: number, transaction, tables)
        if let name, number < OverlayNumbers.firstField { learn([ExactText(name): number]) }
        return name
    }

    /// Takes in numbers that a commit has made true.
    func learn(_ numbers: [ExactText: FieldID]) {
        guard !numbers.isEmpty else { return }
        known.withLock { known in
            for (name, number) in numbers { known.learn(name, number) }
        }
    }

    /// The names that are known, and what they take, in bytes.
    var extent: (count: Int, size: Int) { known.withLock { ($0.names.count, $0.numbers.size) } }
}
