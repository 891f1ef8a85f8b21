/// An enumeration whose numbers are stored in `larder.sqlite`. Here and nowhere else a number has its name: the
/// migrations document the same numbers, and SQL takes them from here.
package protocol StoredCase: RawRepresentable<Int>, CaseIterable, Sendable, Hashable {
    /// As an error's message calls it.
    static var subject: String { get }
}

extension StoredCase {
    init(stored: Int64) throws(OperationsError) {
        guard let value = Int(exactly: stored).flatMap(Self.init) else {
            throw .damagedRow("\(Self.subject) is \(stored), which no version writes")
        }
        self = value
    }
}

/// SQL has numbers as literals, not as values that are bound: only so SQLite knows that a partial index fits.
///
/// ```swift
/// "state = \(mutation: .pending) OR state IN \(mutation: [.acknowledged, .deadLetter])"
/// ```
extension DefaultStringInterpolation {
    mutating func appendInterpolation(mutation state: MutationState) { append(state) }
    mutating func appendInterpolation(mutation states: Set<MutationState>) { append(states) }
    mutating func appendInterpolation(outcome kind: Outcome.Kind) { append(kind) }
    mutating func appendInterpolation(transfer state: TransferState) { append(state) }
    mutating func appendInterpolation(transfer states: Set<TransferState>) { append(states) }
    mutating func appendInterpolation(kind: TransferDraft.Kind) { append(kind) }

    private mutating func append(_ value: some StoredCase) { appendInterpolation(value.rawValue) }

    /// What follows `IN`.
    private mutating func append<Case: StoredCase>(_ values: Set<Case>) {
        appendLiteral("(" + values.map(\.rawValue).sorted().map(String.init).joined(separator: ", ") + ")")
    }
}
