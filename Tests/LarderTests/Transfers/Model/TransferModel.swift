import Foundation
import Larder

/// What plain values say of a transfer.
struct ModelTransfer {
    enum State: Equatable {
        case pending, paused, done, cancelled
        case failed(code: String)
    }

    let isUpload: Bool
    /// A key of its own.
    let location: ObjectLocation
    let file: URL
    /// What is, or is to be, at the other end.
    var bytes: [UInt8]
    var state = State.pending
    var isExpired = false
    /// Whether the storage refuses its bytes.
    var isRefused = false
    /// Whether the file was written to since it was queued.
    var isChanged = false
    /// Whether a runner may have had it.
    var wasBegun = false

    /// What becomes of it when a runner has done all that it can.
    var outcome: State {
        guard state == .pending else { return state }
        if isExpired { return .failed(code: "transfer.expired") }
        if isChanged { return .failed(code: "transfer.sourceChanged") }
        return isRefused ? .failed(code: "object.accessDenied") : .done
    }
}

extension ModelTransfer.State {
    /// Nil while it is being carried out or cleared away.
    init?(_ status: TransferStatus) {
        switch status.state {
        case .pending: self = .pending
        case .paused: self = .paused
        case .done: self = .done
        case .failed: self = .failed(code: status.failure?.code.rawValue ?? "")
        case .cancelling, .cancelled: self = .cancelled
        case .running: return nil
        }
    }
}
