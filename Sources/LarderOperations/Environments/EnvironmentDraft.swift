/// An environment as a program, or a user of the command line, says that it is.
package struct EnvironmentDraft: Sendable, Hashable {
    /// What an environment takes the place of.
    package enum Predecessor: Sendable, Hashable {
        /// The environment of this name; its own, where the backend moved and the name stayed.
        case environment(String)
        /// The partition of a program that named no environment.
        case unnamed
    }

    package var name: String
    package var definition: [UInt8]
    package var fingerprints: Fingerprints
    package var predecessor: Predecessor?
    package var isProtected: Bool

    package init(
        name: String, definition: [UInt8], fingerprints: Fingerprints, predecessor: Predecessor? = nil,
        isProtected: Bool = false
    ) {
        self.name = name
        self.definition = definition
        self.fingerprints = fingerprints
        self.predecessor = predecessor
        self.isProtected = isProtected
    }
}
