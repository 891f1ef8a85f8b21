/// A call of the system that is about to be made, as tests see it.
package struct FileCall: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case open, status, read, write, truncate, synchronize, synchronizeFolder, rename, link, remove, makeFolder
        case setMode, lock, freeSpace
    }

    package var kind: Kind
    package var path: String
    /// How many bytes are to be read or written; zero for other kinds.
    package var count: Int

    package init(_ kind: Kind, _ path: String, count: Int = 0) {
        (self.kind, self.path, self.count) = (kind, path, count)
    }
}

/// What a test makes of a call, in place of the system.
package enum FileFault: Sendable, Hashable {
    /// The call is not made, and fails with this `errno`.
    case failure(Int32)
    /// The call is not made, and answers that it was: a sync that lies.
    case pretence
    /// The call reads or writes so many bytes at most: a short read or write.
    case shortened(to: Int)
}
