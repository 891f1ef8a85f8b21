import LarderFiles

/// Whether an object may appear at the storage by what an attempt has sent there, although the attempt has ended: the
/// storage had all that it takes, and its answer did not arrive. Uploads of the same key that were queued later wait
/// until that is over, so that the object that stays is theirs.
final class UploadDoubt: Sendable {
    private let lasting = Locked<Duration?>(nil)

    /// For how long after the attempt the object may still appear; nil where it is there, or will not be.
    var time: Duration? { lasting.withLock { $0 } }

    /// From here on the storage may have all that it takes.
    func begin(lasting time: Duration) { lasting.withLock { $0 = time } }

    /// The storage has answered.
    func end() { lasting.withLock { $0 = nil } }

    /// The exchange has failed: by an answer, before the storage could have all, or without an answer. A gateway that
    /// lies between (502, 504) does not know what becomes of it, and an answer that ends nowhere says nothing.
    func end(unless error: ObjectError) {
        if let status = error.status {
            if ![502, 504].contains(status), error.code != .unusableAnswer { end() }
        } else if ![.cancelled, .interrupted, .timedOut, .unusableAnswer].contains(error.code) {
            end()
        }
    }
}
