import LarderGraphQL

/// The idempotency key of a mutation: what is the same whenever the same mutation is sent, and for no other.
package struct AppliedKey: Sendable, Hashable, CustomStringConvertible {
    /// Keys are compared by their bytes.
    private let exact: ExactText

    package var text: String { exact.text }
    package var description: String { text }

    /// Nil for an empty text, which is no key.
    package init?(_ text: String) {
        guard !text.isEmpty else { return nil }
        exact = ExactText(text)
    }
}
