package import Foundation

/// Why an attempt failed, or why a mutation was set aside.
package struct MutationFailure: Sendable, Hashable {
    /// What follows from it. Others may be added; the names are stored.
    package struct Class: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        package static let offline = Class(rawValue: "offline")
        package static let throttled = Class(rawValue: "throttled")
        package static let serverFault = Class(rawValue: "serverFault")
        package static let notSignedIn = Class(rawValue: "notSignedIn")
        /// What answers is not the GraphQL server, or the endpoint is none.
        package static let unusableServer = Class(rawValue: "unusableServer")
        package static let conflict = Class(rawValue: "conflict")
        package static let rejected = Class(rawValue: "rejected")
        /// It was sent, and its outcome is unknown.
        package static let outcomeUnknown = Class(rawValue: "outcomeUnknown")
        /// Its time was over, and no attempt was under way.
        package static let expired = Class(rawValue: "expired")
        /// What it depended on was discarded.
        package static let dependencyDiscarded = Class(rawValue: "dependencyDiscarded")
        /// A transfer that it waits for has failed, or was cancelled.
        package static let transferFailed = Class(rawValue: "transferFailed")
        /// Its row was damaged: what could not be read of it is lost. It is not sent again.
        package static let damaged = Class(rawValue: "damaged")
        /// It holds a temporary id for which there will be no real one.
        package static let temporaryIDLost = Class(rawValue: "temporaryIDLost")
        /// A backup brought it back, and the store cannot prove that it was not sent since the backup was made.
        package static let restored = Class(rawValue: "restored")

        /// Whether the attempt may have taken effect. Where a later one had none for sure, that is still so.
        var leavesDoubt: Bool { self == .outcomeUnknown || self == .serverFault || self == .restored }
        /// Whether the attempt had no effect, which says nothing of earlier attempts.
        var isOfOneAttempt: Bool {
            self == .offline || self == .throttled || self == .notSignedIn || self == .unusableServer
        }
    }

    package var `class`: Class
    /// The code of the layer that failed, or the server's.
    package var code: String?
    package var message: String
    /// More, as JSON: the server's errors above all.
    package var details: [UInt8]?
    package var time: Date

    package init(_ class: Class, code: String? = nil, message: String, details: [UInt8]? = nil, time: Date) {
        self.class = `class`
        self.code = code
        self.message = message
        self.details = details
        self.time = time
    }
}
