/// How a source is read, and what is taken of it.
package struct ImportOptions: Sendable, Hashable {
    /// Whether queued mutations are taken. They are then sent by this store: the other program must not send them too.
    package var takesMutations = false
    /// Of an AppSync client with a prefix of its own, without the `_` after it.
    package var prefix: String?
    /// The greatest size of a database in bytes.
    package var maximumFileSize: Int64 = 8 << 30
    /// The greatest size of a record in bytes.
    package var maximumRecordSize: Int64 = 64 << 20

    package init() {}
}
