import LarderFiles
import LarderOperations
import LarderRecords

extension LarderError {
    init(translating error: any Error) {
        switch error {
        case let error as LarderError: self = error
        case let error as OperationsError: self.init(error)
        case let error as RecordError: self = .parking(error)
        case let error as FileError where error.code == .protected: self = .protected(cause: error)
        default: self.init(.notRunnable, "\(error)", cause: error)
        }
    }

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

    static var cancelled: LarderError { LarderError(.cancelled, "The task was cancelled") }
}
