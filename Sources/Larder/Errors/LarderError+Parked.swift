import LarderRecords

extension LarderError {
    /// A cache that was closed is a partition that was parked.
    static func parking(_ error: RecordError) -> LarderError {
        guard error.code == .closed else { return LarderError(error) }
        return LarderError(.parked, parked.message, cause: error)
    }

    static var parked: LarderError {
        LarderError(
            .parked,
            "The partition is not the current one any more, or its store was closed; ask the store for the current one")
    }
}
