/// How an attempt tells the server the mutation's idempotency key, as it is stored.
package struct KeyDelivery: RawRepresentable, Sendable, Hashable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    /// Not at all: the server could not tell a repeat.
    package static let none = KeyDelivery(rawValue: "")
    /// In a way that an earlier version of the library did not note.
    package static let unnoted = KeyDelivery(rawValue: "*")
    /// Not known to this one: the program has replayed the mutation, and answers for it that it is sent again.
    package static let answeredFor = KeyDelivery(rawValue: "!")

    package static func header(_ name: String) -> KeyDelivery { KeyDelivery(rawValue: "header:\(name.lowercased())") }
    package static func variable(_ name: String) -> KeyDelivery { KeyDelivery(rawValue: "variable:\(name)") }

    /// Whether the server would know an attempt that tells it so for a repeat of one that told it as this says, or the
    /// program answers for it.
    package func allowsRepeat(_ telling: KeyDelivery) -> Bool {
        self == .answeredFor || telling != .none && (self == telling || self == .unnoted)
    }
}

/// What is left in doubt of a mutation that goes back to pending.
package enum RemainingDoubt: Sendable, Hashable {
    /// What was in doubt before the attempt.
    case asBefore
    /// The attempt too: it may have taken effect.
    case attempt
    /// The attempt too, and a repeat would tell nothing of it: it can only be asked about.
    case unrepeatable
    /// Nothing: it is known that none of the attempts took effect.
    case none
}
