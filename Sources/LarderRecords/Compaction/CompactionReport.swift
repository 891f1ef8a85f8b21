/// What a compaction did.
package struct CompactionReport: Sendable, Hashable {
    /// The bytes of the data file.
    package let bytesBefore: Int64
    package let bytesAfter: Int64
    /// The number of the generation that is current now.
    package let generation: Int
}

/// How far the making of a generation has come. A crash after any of these leaves the old generation or the new one,
/// whole.
package enum CompactionStep: Sendable, Hashable, CaseIterable {
    /// The new generation is written, under a name of no meaning. The old one is current.
    case written
    /// It has its number. The old one is current, and the new one will be made once more.
    case named
    /// The old one says that it is superseded, durably. The new one is current.
    case superseded
    /// This process goes on with the new one, and the old one is removed.
    case switched
}
