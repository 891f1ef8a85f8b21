/// A change as the log has it.
package struct LoggedChange: Sendable, Hashable {
    package let number: UInt64
    /// The objects that were changed, by their cache keys, in ascending order of bytes; an object without identity
    /// counts as the one that holds it, and one that is there no more is `#` and its number.
    package let keys: [String]
    /// Whether there were too many to be kept.
    package let isEverything: Bool
}
