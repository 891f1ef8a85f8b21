/// Why a credential is put into quarantine, and not used.
public enum QuarantineReason: String, Sendable, Hashable, CaseIterable {
    /// It was issued under another identity: another user pool, client or identity pool.
    case otherEnvironment
    /// It was sealed for another partition.
    case otherPartition
    /// Its bytes are not the ones that were sealed.
    case damaged
    /// A newer version of the library has sealed it.
    case newerFormat
    /// The key that opened it was destroyed.
    case keyDestroyed
    /// The key of the partition that opened it is damaged, and was put into quarantine as well.
    case keyDamaged
    /// The program's key that opened it was gone when a user signed in again.
    case keyGone
    /// It is good, and of no use: the user's tokens that it was issued for are in quarantine.
    case incomplete
}

/// Sealed bytes cannot be opened.
package struct SealError: Error, Hashable {
    package var reason: QuarantineReason
}
