public import Foundation
import LarderOperations

/// What is known of a transfer.
public struct TransferStatus: Sendable, Hashable {
    /// Which way the bytes go.
    public enum Kind: String, Sendable, Hashable, Codable {
        /// To the storage, and from it.
        case upload, download
    }

    /// Where a transfer stands.
    ///
    /// | from | to |
    /// | --- | --- |
    /// | pending | running when a runner takes it up, paused, cancelling, failed when its time is over |
    /// | running | done, failed, paused, cancelling; pending after a failure that may pass, or if its runner has died |
    /// | paused | pending by `resume`, cancelling |
    /// | failed | pending by `retry`, cancelling |
    /// | cancelling | cancelled when the storage's parts, or the partial file, are gone |
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// As the table says.
        case pending, running, paused, failed, cancelling, done, cancelled
    }

    /// Why an attempt, or the transfer, failed.
    public struct Failure: Sendable, Hashable {
        /// The code of the layer that failed: `transfer.…`, `object.…` and others.
        public let code: LarderError.Code
        /// What happened and what would help, in English, for developers.
        public let message: String
        /// When.
        public let time: Date
    }

    /// By which it is found.
    public let id: TransferID
    /// Which way the bytes go.
    public let kind: Kind
    /// Where it stands.
    public let state: State
    /// The object.
    public let location: ObjectLocation
    /// The file.
    public let file: URL
    /// Transfers with a greater priority are begun first.
    public let priority: Int
    /// In bytes; nil of a download of which nothing is known yet.
    public let size: Int64?
    /// How many bytes have arrived in parts that are whole: what will not be sent again.
    public let arrived: Int64
    /// How many attempts were begun.
    public let attempts: Int
    /// The last failure: of a failed transfer why it is one, of another why it is not done yet.
    public let failure: Failure?
    /// Names the object's bytes, once they are known.
    public let etag: String?
    /// The version of the object that was uploaded, in buckets that keep versions; nil of a download.
    public let version: String?
    /// When it was queued.
    public let created: Date
    /// When it is of no use any more; nil for never.
    public let expires: Date?
    /// When it was done, cancelled or failed.
    public let ended: Date?
    /// When it is to be taken up again after a failure.
    public let notBefore: Date?
    /// When an executor outside of the program was handed the file, which may have it still; nil where none has it.
    public let handedOver: Date?

    /// Whether nothing more happens to it unless the user or the program asks for it.
    public var isEnded: Bool { state == .done || state == .failed || state == .cancelled }
}

extension TransferStatus {
    init(_ transfer: StoredTransfer) {
        id = TransferID(transfer.id)
        kind = Kind(transfer.kind)
        state = State(transfer.state)
        location = transfer.location
        file = URL(filePath: transfer.path)
        priority = transfer.priority
        size = transfer.size
        arrived = transfer.completed
        attempts = transfer.attempts
        failure = transfer.failure.map { Failure(code: .init(rawValue: $0.code), message: $0.message, time: $0.time) }
        etag = transfer.etag
        version = transfer.version
        created = transfer.created
        expires = transfer.expires
        ended = transfer.ended
        notBefore = transfer.notBefore
        handedOver = transfer.handedOver
    }
}

extension TransferStatus.Kind {
    init(_ kind: TransferDraft.Kind) { self = kind == .upload ? .upload : .download }
}

extension TransferStatus.State {
    init(_ state: TransferState) {
        self =
            switch state {
            case .pending: .pending
            case .running: .running
            case .paused: .paused
            case .failed: .failed
            case .cancelling: .cancelling
            case .done: .done
            case .cancelled: .cancelled
            }
    }
}
