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
            RecordError(Code(error.code), error.message, cause: error)
        case let error as DamagedRecord:
            RecordError(.damaged, "A record of the cache is damaged: \(error.what); remove the cache and fetch again")
        case let error as ResponseTooLarge: RecordError(error)
        default: RecordError(.storage, "The record cache failed", cause: error)
        }
    }
}

extension RecordError {
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
