import LarderFiles
import LarderOperations

/// New credentials that could not be stored yet. The old ones must not be refreshed again: their refresh token is used.
///
/// They outlive the session that got them, which is over when its partition is parked, and wait for the next one.
final class UnsavedCredentials: Sendable {
    /// What the provider gave, what it was given for, with the rows of that, and the lock under which it was got.
    typealias Value = (new: Credentials, old: Credentials, rows: [SealedCredential], lock: HeldLock)

    private let values = Locked<[Credentials.Part: Value]>([:])

    subscript(part: Credentials.Part) -> Value? {
        get { values.withLock { $0[part] } }
        set { values.withLock { $0[part] = newValue } }
    }
}
