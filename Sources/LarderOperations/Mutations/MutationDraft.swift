package import Foundation

/// A mutation that is to be queued.
package struct MutationDraft: Sendable {
    /// By which its outcome is found, also after a restart.
    package var id: UUID
    /// The partition that it belongs to.
    package var partition: String
    /// Mutations of one lane are sent in their sequence; lanes run side by side.
    package var lane: String
    /// By which the server tells a repeat; the id's canonical text (in small letters) where there is no other.
    package var idempotencyKey: String?
    package var content: MutationContent
    /// What its optimistic layer can touch, as the layer's maker wrote it down; nil where it is not known.
    package var touched: [UInt8]?
    /// Mutations of the same partition that must be settled before. One that is not there any more is.
    package var dependencies: [UUID]
    /// Transfers of the same partition that must be done before.
    package var transfers: [UUID]
    /// Reserved by it: its answer says which ids they stand for.
    package var temporaryIDs: [TemporaryID]
    package var created: Date
    /// When it is of no use any more: it becomes a dead letter then, unless an attempt is under way.
    package var expires: Date?

    /// - Parameter id: Ids made by `UUID.ascending` are quick to store; any other will do.
    package init(
        id: UUID? = nil, partition: String, lane: String = "", idempotencyKey: String? = nil,
        content: MutationContent, touched: [UInt8]? = nil, dependencies: [UUID] = [], transfers: [UUID] = [],
        temporaryIDs: [TemporaryID] = [],
        created: Date, expires: Date? = nil
    ) {
        self.id = id ?? .ascending(at: created)
        self.partition = partition
        self.lane = lane
        self.idempotencyKey = idempotencyKey
        self.content = content
        self.touched = touched
        self.dependencies = dependencies
        self.transfers = transfers
        self.temporaryIDs = temporaryIDs
        self.created = created
        self.expires = expires
    }
}
