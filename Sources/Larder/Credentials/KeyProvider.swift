/// Where the program's keys are kept: outside the store, so that a copy of the store tells nothing of credentials.
///
/// A provider may be slow, wait for a person, or hang: the caller gives up at its own deadline, and an answer that
/// comes later is kept for the next caller. The provider's calls run on threads of their own and may block them.
///
/// For each store one process at a time makes, adds or drops keys, under a lock.
public protocol KeyProvider: Sendable, CustomStringConvertible {
    /// What it is, for errors and people, such as `the key file /home/ada/app.key`. Nothing secret.
    var description: String { get }

    /// The present keys.
    ///
    /// - Throws: `.missing` where there is none, and only if that is certain; `.locked`, `.unreadable` and the like
    ///   where it cannot be told now.
    func keys(within time: Duration) async throws(KeyError) -> MasterKeys

    /// Makes a key where there is none, durably. Where there is one after all, returns that.
    func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys

    /// Makes a new key that is in use from now on, durably; the former key is the first of the older ones.
    ///
    /// - Throws: `.cannotRotate` where the user changes the key outside the program.
    func addKey(within time: Duration) async throws(KeyError) -> MasterKeys

    /// Forgets older keys, durably. The key in use stays, whatever is said.
    func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError)
}
