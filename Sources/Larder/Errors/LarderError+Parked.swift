internal import LarderRecords

extension LarderError {
    /// A cache that was closed is a partition that was parked.
    static func parking(_ error: RecordError) -> LarderError {
        guard error.code == .closed else { return LarderError(error) }
        return LarderError(.parked, parked.message, cause: error)
    }

    static var parked: LarderError {
        LarderError(.parked, "the partition was parked, or its store closed; open the store again")
    }
}
