import LarderFiles
import LarderLMDB

/// Runs `body` and turns whatever it throws into this layer's error.
func translated<Result>(_ body: () throws -> Result) throws(RecordError) -> Result {
    do { return try body() } catch { throw RecordError.translated(error) }
}

extension RecordError {
    /// The one place where errors of the layers below become this layer's.
    package static func translated(_ error: any Error) -> RecordError {
        switch error {
        case let error as RecordError: error
        case let error as FileError: translated(LMDBError(error))
        case let error as LMDBError:
            RecordError(Code(error.code), fullMessage(error.code) ?? error.message, cause: error)
        case let error as DamagedRecord:
            RecordError(.damaged, "A record of the cache is damaged: \(error.what); remove the cache and fetch again")
        case let error as ResponseTooLarge: RecordError(error)
        default: RecordError(.storage, "The record cache failed", cause: error)
        }
    }
}

extension RecordError {
    /// What a caller can do about a cache that takes no more; nil for other codes, whose remedies LMDB's layer knows.
    private static func fullMessage(_ code: LMDBError.Code) -> String? {
        switch code {
        case .mapFull:
            "The cache has reached its maximum size; remove or evict what is not needed, or open the store with a "
                + "greater maximumSize"
        case .diskFull: "The disk is full; free space and try again"
        case .transactionFull: "The change is too large for one commit; write less at a time"
        default: nil
        }
    }

    init(_ error: ResponseTooLarge) {
        self.init(
            .tooLarge,
            "The answer takes more than the \(error.limit) bytes of memory that one may; ask for less at a "
                + "time, or open the store with a greater maximumAnswerSize")
    }
}

extension RecordError.Code {
    fileprivate init(_ code: LMDBError.Code) {
        self =
            switch code {
            case .mapFull, .diskFull, .transactionFull: .full
            case .damaged, .truncated, .foreign, .tableMismatch: .damaged
            case .futureVersion: .futureFormat
            case .readOnly, .permissionDenied: .notWritable
            case .protected: .protected
            case .lockTimedOut: .busy
            case .closed: .closed
            case .alreadyOpen: .alreadyOpen
            case .missing, .tableMissing: .missing
            case .tooManyFiles, .outOfMemory: .systemLimit
            default: .storage
            }
    }
}
