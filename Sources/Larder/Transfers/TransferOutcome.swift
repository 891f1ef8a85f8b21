/// How a transfer ended.
public enum TransferOutcome: Sendable {
    /// The object is at the storage, or the file at its place.
    case done(TransferStatus)
    /// It failed, for this reason, by the code of the layer that failed. It stays so until the user or the program
    /// retries it or gives it up.
    case failed(LarderError)
    /// The user or the program gave it up.
    case cancelled

    /// Why it failed; nil for one that did not.
    public var failure: LarderError? {
        if case .failed(let error) = self { error } else { nil }
    }

    /// Whether all of it has arrived.
    public var isDone: Bool {
        if case .done = self { true } else { false }
    }
}

extension TransferOutcome {
    /// Nil where the transfer has not ended.
    init?(_ status: TransferStatus) {
        switch status.state {
        case .done: self = .done(status)
        case .failed:
            self = .failed(
                status.failure.map { LarderError($0.code, $0.message) }
                    ?? LarderError(.unknownTransfer, "The transfer has failed, and does not say why"))
        case .cancelled, .cancelling: self = .cancelled
        case .pending, .running, .paused: return nil
        }
    }
}
