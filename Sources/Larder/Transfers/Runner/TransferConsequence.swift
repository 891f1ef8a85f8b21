/// What follows for a transfer from the error that ended its attempt.
enum TransferConsequence {
    /// Tried again after a pause.
    case retry(isFault: Bool, after: Duration?)
    case refused
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

    /// What a closure of ours has thrown within an exchange is not the exchange's failure.
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
        // Whose credentials have ended since has been let in already.
        case .retry, .refused: return error.code != .noSuchUpload
        case .fail: return false
        }
    }
}
