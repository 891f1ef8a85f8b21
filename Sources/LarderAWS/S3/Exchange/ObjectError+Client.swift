import Larder
import LarderHTTP

extension ObjectError {
    /// What the HTTP client threw, or what was thrown through it.
    init(ofClient error: any Error) {
        if let error = error as? ObjectError {
            self = error
            return
        }
        let known = error as? TransportError ?? TransportError(ofClient: error)
        let code: Code =
            switch known.code {
            case .unreachable: .unreachable
            case .timedOut: .timedOut
            case .insecure: .insecure
            case .unusableAnswer: .unusableAnswer
            case .unusableRequest: .unusableRequest
            case .notPrepared: .notPrepared
            case .cancelled: .cancelled
            default: .interrupted
            }
        self.init(code, known.message, retryAfter: known.retryAfter, cause: known.cause)
    }

    /// What a closure of the caller's threw.
    init(ofCaller error: any Error, _ code: Code, _ message: String) {
        switch error {
        case let error as ObjectError: self = error
        case is CancellationError: self = .exchangeCancelled
        default: self.init(code, message, retryAfter: (error as? any RetryAfterError)?.retryAfter, cause: error)
        }
    }

    static var exchangeCancelled: ObjectError { ObjectError(.cancelled, "The exchange was cancelled.") }
}
