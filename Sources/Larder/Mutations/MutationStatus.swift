public import Foundation
public import LarderGraphQL
import LarderOperations
public import LarderRecords

/// What is known of a queued mutation.
public struct MutationStatus: Sendable, Hashable {
    /// Where a mutation is on its way.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// Not sent yet, or known to have had no effect.
        case pending
        /// Sent, or about to be.
        case inFlight
        /// Carried out by the server; the answer is yet to be stored.
        case acknowledged
        /// Set aside, with the reason, until the user or the program replays or discards it.
        case deadLetter
        /// Carried out, and the answer is stored.
        case applied
        /// Given up.
        case discarded
    }

    /// Why a mutation waits, was set aside or was given up.
    public struct Failure: Sendable, Hashable {
        /// What follows from a failure; the article on mutations says it of each.
        public struct Kind: RawRepresentable, Sendable, Hashable {
            /// The kind's name, as it is stored.
            public let rawValue: String

            /// A kind by its name.
            public init(rawValue: String) { self.rawValue = rawValue }
        }

        /// What kind of failure it is.
        public let kind: Kind
        /// The code of the layer that failed; nil where none did, as for a mutation that the server refused.
        public let code: LarderError.Code?
        /// The server's own code, where it refused the mutation with one: `errorType`, or `extensions.code`.
        public let serverCode: String?
        /// What happened, for people.
        public let message: String
        /// What the server said; none of a mutation that was discarded.
        public let errors: [GraphQLError]
        /// When it failed, or was discarded.
        public let time: Date
    }

    /// The mutation's id.
    public let id: MutationID
    /// Where it is.
    public let state: State
    /// Its place in the order.
    public let sequence: Int64
    /// How often it was sent, or begun to be; 0 once it was applied or discarded.
    public let attempts: Int
    /// The last failure.
    public let failure: Failure?
    /// The data of the server's answer, once it was applied; nil where they take more than 64 KiB, which only the
    /// cache keeps. Reading it takes time in proportion to its size.
    public var result: Value? { storedResult.flatMap { try? Value(json: $0) } }
    /// As it is stored.
    package let storedResult: [UInt8]?
    /// What the server said had failed of an applied mutation that took effect in part: the fields at their paths, with
    /// what failed below them, are null in the result.
    public let errors: [GraphQLError]
    /// Whether it waits for one that was set aside.
    public let isStalled: Bool
}

extension MutationStatus {
    init(_ mutation: Mutation) {
        id = MutationID(mutation.id)
        state = State(mutation.state)
        sequence = mutation.sequence
        attempts = mutation.attempts
        failure = mutation.failure.map(Failure.init)
        storedResult = nil
        errors = []
        isStalled = mutation.isStalled
    }

    init(_ outcome: Outcome) {
        id = MutationID(outcome.mutation)
        state = outcome.kind == .applied ? .applied : .discarded
        sequence = outcome.sequence
        attempts = 0
        failure = outcome.failure.map(Failure.init)
        storedResult = outcome.result
        errors = GraphQLError.list(outcome.errors)
        isStalled = false
    }

    /// Whether nothing more happens to it unless the user or the program asks for it.
    public var isEnded: Bool { state == .applied || state == .discarded || state == .deadLetter }
}

extension MutationStatus.State {
    init(_ state: MutationState) {
        self =
            switch state {
            case .pending: .pending
            case .inFlight: .inFlight
            case .acknowledged: .acknowledged
            case .deadLetter: .deadLetter
            }
    }
}

extension MutationStatus.Failure {
    init(_ failure: MutationFailure) {
        kind = Kind(rawValue: failure.class.rawValue)
        code = failure.code.flatMap(LarderError.Code.init(ofLayer:))
        serverCode = code == nil ? failure.code : nil
        message = failure.message
        errors = GraphQLError.list(failure.details)
        time = failure.time
    }
}
