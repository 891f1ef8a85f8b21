import Foundation

extension Store {
    /// Takes a new key into use for the credentials of all partitions, and forgets the old one.
    ///
    /// A process that is killed while it works has lost nothing: run it again. A key provider's place is one store's:
    /// keys that two stores share would be forgotten for both.
    ///
    /// - Parameter time: How long the key provider, and other processes that rotate keys, may be waited for; nil for the
    ///   session's `keyTimeout`.
    /// - Throws: `keys.…` as the provider; `keys.exposed` for a key file in the store's folder; `keys.cannotRotate`;
    ///   `larder.timedOut` with the holder of the lock; `.parked`; `operations.…`.
    public func rotateKeys(within time: Duration? = nil) async throws(LarderError) -> KeyRotationReport {
        let rotation = KeyRotation(
            database: try operationsStore.database(),
            provider: options.keys(besides: folder),
            locks: folder.appending(path: "locks"), label: options.label, options.files)
        return try await rotation.run(within: time ?? options.session.keyTimeout)
    }
}
