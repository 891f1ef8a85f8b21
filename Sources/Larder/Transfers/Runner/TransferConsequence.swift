import LarderFiles

/// What follows for a transfer from the error that ended its attempt.
enum TransferConsequence {
    /// It is tried again after a pause, and at the earliest after the one that the storage asked for. Whether it is a
    /// fault of the server's or the connection's is counted.
    case retry(isFault: Bool, after: Duration?)
    /// The storage does not take the credentials: it waits for a user.
    case refused
    /// It would fail again.
    case fail

    init(of error: ObjectError) {
        let asked = error.retryAfter
        self =
            switch error.code {
            case .unreachable, .insecure, .notPrepared, .throttled: .retry(isFault: false, after: asked)
            case .expiredCredentials, .invalidCredentials: .refused
            case .timedOut, .interrupted, .serverFault, .checksum, .wrongLength, .unusableAnswer, .incomplete,
                .noSuchUpload:
                .retry(isFault: true, after: asked)
            default: .fail
            }
    }

    /// Of what went wrong with the file.
    init(of error: LarderError) {
        let isShortage = (error.cause as? FileError)?.isShortage ?? false
        self = isShortage ? .retry(isFault: false, after: nil) : .fail
    }

    /// An error that a closure of the library's own has thrown within an exchange is not the exchange's failure.
    static func root(of error: any Error) -> any Error {
        guard let object = error as? ObjectError else { return error }
        switch object.code {
        case .cancelled: return CancellationError()
        case .local: return object.cause.map(root) ?? object
        default: return object
        }
    }

    /// Whether an exchange that has failed may go well in another at the same time.
    static func mayPass(_ error: any Error) -> Bool {
        guard let error = root(of: error) as? ObjectError else { return false }
        switch TransferConsequence(of: error) {
        // The storage has let in already an exchange whose credentials have ended since.
        case .retry, .refused: return error.code != .noSuchUpload
        case .fail: return false
        }
    }
}
