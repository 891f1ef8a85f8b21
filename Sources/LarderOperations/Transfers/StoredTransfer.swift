package import Foundation

/// A transfer as it is stored.
package struct StoredTransfer: Sendable, Hashable {
    /// Its place in the order. Never used again.
    package var sequence: Int64
    package var id: UUID
    package var partition: String
    package var kind: TransferDraft.Kind
    package var state: TransferState
    /// The name of its storage; nil: the one that has none.
    package var storage: String?
    package var priority: Int
    package var bucket: String
    package var key: String
    package var region: String?
    package var path: String
    package var replaces: Bool
    package var contentType: String?
    package var metadata: [UInt8]?
    /// How many attempts were begun.
    package var attempts: Int
    package var owner: String?
    package var created: Date
    package var expires: Date?
    package var notBefore: Date?
    /// In bytes; nil of a download of which nothing is known yet.
    package var size: Int64?
    /// Of an upload the source as it was when it was queued, of a download the partial file once there is one.
    package var file: FileIdentity?
    /// The SHA-256 that all bytes must have; nil for any.
    package var sha256: [UInt8]?
    /// Nil: it goes in one piece.
    package var partSize: Int64?
    /// The storage's name for an upload in parts.
    package var upload: String?
    /// The uploads of this key that the storage had before it was asked to begin one whose name did not arrive; nil
    /// where it was not asked.
    package var uploadsBefore: [String]?
    /// Which bytes a download is of, or what an upload has made.
    package var etag: String?
    package var version: String?
    package var crc32c: UInt32?
    package var ended: Date?
    package var failure: TransferFailure?
    /// When an executor outside of the program was handed it, which may have it still; nil where none has it.
    package var handedOver: Date?
    /// How many bytes have arrived in parts that are whole.
    package var arrived: Int64

    /// Bytes that will not be moved again. Of one that is done the parts are forgotten.
    package var completed: Int64 { state == .done ? size ?? 0 : arrived }
    /// The attempt that was begun last.
    package var attempt: TransferAttempt { TransferAttempt(transfer: id, number: attempts) }

    /// For how long an executor may carry a transfer out: a week, in seconds.
    package static let longestHandOver = 604_800.0

    /// Until when the executor may have what it was handed at a time; nil where that is over. A clock that was set back
    /// by more than that ends it too.
    package static func handOverEnd(_ set: Date, _ now: Date) -> Date? {
        abs(set.timeIntervalSince(now)) < longestHandOver ? set.addingTimeInterval(longestHandOver) : nil
    }
}

/// One try to carry a transfer out. Only the one that is under way can note anything.
package struct TransferAttempt: Sendable, Hashable {
    package var transfer: UUID
    /// From 1.
    package var number: Int

    package init(transfer: UUID, number: Int) {
        self.transfer = transfer
        self.number = number
    }
}

/// Why a transfer, or an attempt, failed.
package struct TransferFailure: Sendable, Hashable {
    /// The code of the layer that failed.
    package var code: String
    package var message: String
    package var time: Date

    /// The code of one whose row was damaged: what could not be read of it is lost.
    static let damagedRow = OperationsError.Code.damagedRow.rawValue
    /// The code of one that waits because the runner does not have its storage.
    package static let noStorage = "transfer.noStorage"
    /// The store is a copy of another, which may have carried the transfer out.
    package static let restored = "transfer.restored"

    package init(code: String, message: String, time: Date) {
        self.code = code
        self.message = message
        self.time = time
    }
}

/// A part that has arrived whole.
package struct StoredPart: Sendable, Hashable {
    /// From 1.
    package var number: Int
    package var size: Int64
    /// As the storage sent it; nil of a download.
    package var etag: String?
    package var crc32c: UInt32?

    package init(number: Int, size: Int64, etag: String? = nil, crc32c: UInt32? = nil) {
        self.number = number
        self.size = size
        self.etag = etag
        self.crc32c = crc32c
    }
}
