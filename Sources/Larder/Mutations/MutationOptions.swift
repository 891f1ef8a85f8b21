public import Foundation
public import LarderGraphQL

/// How a mutation is kept until the server has carried it out.
public struct MutationOptions: Sendable {
    /// By which its outcome is found; a new one unless given. Queueing the same id twice is `operations.duplicate`.
    public var id: MutationID?
    /// The mutations that it must not overtake.
    public var lane: MutationLane
    /// Mutations that must have taken effect before. One that has is no hindrance; where one was discarded, the mutation
    /// is set aside (`dependencyDiscarded`); one that the store does not know is refused.
    public var dependencies: [MutationID]
    /// Files that go with it: it is sent when they are uploaded. The first of its lane holds up the others meanwhile;
    /// give it a lane of its own where that is not meant. Where an upload fails or is cancelled, it is set aside.
    public var files: [MutationFile]
    /// What the server is expected to answer: the data, complete as for `Partition.write`. Shown until it answers.
    public var optimisticResponse: Value?
    /// What it does to lists.
    public var listChanges: [ListChange]
    /// The name of the updater that works out what else it does to lists; see `Store.Options.updaters`.
    public var updater: String?
    /// Ids that stand in variables and optimistic response for the ones that the server will give. Where the optimistic
    /// response has one, the answer has the real id.
    public var temporaryIDs: [TemporaryObjectID]
    /// By which the server tells a repeat; the id's text unless given.
    public var idempotencyKey: String?
    /// After this time it is of no use any more, and set aside unless it is under way.
    public var expires: Date?
    /// The name of the resolver that decides on a conflict; see `RunOptions.Mutations.resolvers`.
    public var resolver: String?
    /// The name of the query that tells whether it took effect; see `RunOptions.Mutations.checks`.
    public var check: String?

    /// In the one lane, without optimistic response, for ever.
    public init(
        id: MutationID? = nil, lane: MutationLane = .main, dependencies: [MutationID] = [],
        files: [MutationFile] = [], optimisticResponse: Value? = nil, listChanges: [ListChange] = [],
        updater: String? = nil, temporaryIDs: [TemporaryObjectID] = [], idempotencyKey: String? = nil,
        expires: Date? = nil, resolver: String? = nil, check: String? = nil
    ) {
        self.id = id
        self.lane = lane
        self.dependencies = dependencies
        self.files = files
        self.optimisticResponse = optimisticResponse
        self.listChanges = listChanges
        self.updater = updater
        self.temporaryIDs = temporaryIDs
        self.idempotencyKey = idempotencyKey
        self.expires = expires
        self.resolver = resolver
        self.check = check
    }
}
