/// The partition that is to become the current one.
package struct Destination: Sendable, Hashable {
    package enum User: Sendable, Hashable {
        /// The user who worked with the environment last; a guest where there was none.
        case last
        case guest
        case user(String)
    }

    package enum Environment: Sendable, Hashable {
        /// One that is stored under this name.
        case stored(String)
        /// One that is stored as it is here, if it is not yet.
        case draft(EnvironmentDraft)
    }

    package var environment: Environment
    package var user: User
    /// The name of the partition, if it has to be made. No other partition may have it.
    package var newName: String

    /// - Parameter newName: A random one where it is left out: 16 digits in hexadecimal.
    package init(environment: Environment, user: User, newName: String = Self.randomName) {
        self.environment = environment
        self.user = user
        self.newName = newName
    }

    package static var randomName: String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
