public import LarderRecords

/// A read that has been looked up and compiled.
public struct PreparedRead: Sendable {
    let partition: Partition
    let operation: BoundOperation
    let root: RecordCache.Root

    /// As `Partition.read`.
    public func read(allowsPartial: Bool = false) throws(LarderError) -> Response {
        try partition.answer(operation, from: root, allowsPartial: allowsPartial).response
    }
}
