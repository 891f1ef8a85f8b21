package import Foundation

/// A credential that could not be opened where it lay, without its bytes.
package struct QuarantinedCredential: Sendable, Hashable {
    /// The kind of what was no credential but the key of them all; its identity is the id of the key it is sealed with.
    package static let partitionKeyKind = "partitionKey"

    package var id: Int64
    package var partition: String
    package var kind: String
    package var identity: String
    package var reason: String
    package var quarantined: Date

    package init(id: Int64, partition: String, kind: String, identity: String, reason: String, quarantined: Date) {
        self.id = id
        self.partition = partition
        self.kind = kind
        self.identity = identity
        self.reason = reason
        self.quarantined = quarantined
    }
}
