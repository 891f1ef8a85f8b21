public import Foundation
package import LarderOperations

/// What can be said of a partition's session and credentials without a key, and to any reader: nothing of it is secret.
public struct SessionStatus: Sendable, Hashable {
    /// Credentials of a kind.
    public struct Kind: Sendable, Hashable {
        /// Which of a session's credentials they are; nil for a kind that this version does not know.
        public var part: Credentials.Part? { Credentials.Part(rawValue: kind) }
        /// As it is stored.
        package var kind: String
        /// When the user signed in.
        public var created: Date
        /// When the credentials were last refreshed.
        public var updated: Date
    }

    /// A credential, or a partition's key, that was put into quarantine.
    public struct Quarantined: Sendable, Hashable {
        /// Which of a session's credentials it is; nil where it is the key that sealed them.
        public var part: Credentials.Part? { Credentials.Part(rawValue: kind) }
        /// As it is stored: `userPool`, `cloud`, or `partitionKey`.
        package var kind: String
        /// Why; nil for a reason that this version does not know.
        public var reason: QuarantineReason? { QuarantineReason(rawValue: reasonName) }
        /// As it is stored.
        package var reasonName: String
        /// When they were put there.
        public var time: Date
    }

    /// The partition's name.
    package var partition: String
    /// Its environment's name; nil where it has none.
    package var environment: String?
    /// Nil for a guest.
    package var user: String?
    /// The environment and the user of the session.
    public var identity: PartitionIdentity {
        PartitionIdentity(name: partition, environment: environment, user: user.map { .user($0) } ?? .guest)
    }
    /// Whether a user is signed in, since when, and why.
    public var standing: SessionStanding
    /// What is stored.
    public var credentials: [Kind]
    /// The id of the program's key that they are sealed with, at one remove.
    public var sealedWith: String?
    /// Oldest first.
    public var quarantined: [Quarantined]
}

extension SessionStatus {
    package init(_ overview: CredentialOverview) {
        partition = overview.partition
        environment = overview.environment
        user = overview.user
        standing = SessionStanding(overview.session)
        credentials = overview.credentials.map { Kind(kind: $0.kind, created: $0.created, updated: $0.updated) }
        sealedWith = overview.sealedWith
        quarantined = overview.quarantined.map {
            Quarantined(kind: $0.kind, reasonName: $0.reason, time: $0.quarantined)
        }
    }
}

extension Session {
    /// What can be said without a key.
    ///
    /// - Throws: `.parked`, `operations.…`.
    public func status() throws(LarderError) -> SessionStatus {
        // A session that is over answers nothing.
        _ = try unchanged()
        let overviews = try translating { () throws(OperationsError) in
            try database.credentials.overview(of: partition)
        }
        return overviews.first.map { SessionStatus($0) }
            ?? SessionStatus(
                partition: partition, standing: SessionStanding(nil), credentials: [], quarantined: [])
    }
}
