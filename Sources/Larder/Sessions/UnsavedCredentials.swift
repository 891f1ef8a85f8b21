import LarderOperations
import Synchronization

/// New credentials that could not be stored yet. The old ones must not be refreshed again: their refresh token is used.
///
/// They outlive the session that got them, which is over when its partition is parked, and wait for the next one.
final class UnsavedCredentials: Sendable {
    /// The rows that they are for, and the lock under which they were got.
    typealias Value = (credentials: Credentials, rows: [SealedCredential], lock: HeldLock)

    private let value = Mutex<Value?>(nil)

    var now: Value? { value.withLock { $0 } }
    func keep(_ new: Value?) { value.withLock { $0 = new } }
}
