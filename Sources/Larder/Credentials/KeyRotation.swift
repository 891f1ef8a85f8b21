import Crypto
package import Foundation
package import LarderFiles
package import LarderOperations

/// What `Store.rotateKeys` has done.
public struct KeyRotationReport: Sendable, Hashable {
    /// The id of the key that is in use now.
    public var current: String
    /// How many partitions' keys were sealed anew.
    public var resealed: Int
    /// The partitions whose keys could not be opened, and are as they were.
    public var unopened: [String]
    /// The ids that the provider was told to forget.
    public var dropped: [String]
}

/// Takes a new key into use for all partitions of a store.
///
/// The provider keeps a new key; then the keys of all partitions are sealed with it, in one transaction; then the
/// provider forgets the old one. A process that is killed between any two of these has lost nothing: run the rotation
/// again. Credentials themselves are not touched.
package struct KeyRotation: Sendable {
    /// Where a rotation may be killed.
    package enum KillPoint: String, Sendable, CaseIterable { case locked, keyAdded, resealed, keyDropped }

    private let database: OperationsDatabase
    private let provider: any KeyProvider
    private let locks: URL
    private let label: String
    private let files: FileSystem
    /// Called after each step; for programs that are killed there.
    package var reached: @Sendable (KillPoint) -> Void = { _ in }

    /// - Parameter locks: The folder of the store's locks.
    package init(
        database: OperationsDatabase, provider: any KeyProvider, locks: URL, label: String,
        _ files: FileSystem = FileSystem()
    ) {
        self.files = files
        self.database = database
        self.provider = provider
        self.locks = locks
        self.label = label
    }

    /// Takes a new key into use; where the provider's key is changed by others and they have done so, that one.
    ///
    /// - Throws: `keys.…` as the provider; `keys.cannotRotate`; `larder.timedOut` with the holder of the lock;
    ///   `operations.…`.
    package func run(within time: Duration) async throws(LarderError) -> KeyRotationReport {
        let deadline = SuspendingClock.now + time
        let lock = try await HeldLock.acquire(
            CredentialVault.keyLock, in: locks, files, for: "rotating keys", label: label, until: deadline)
        let provider = provider
        // Not given up half-way because a caller has: the lock is released when the work has really ended.
        let task = SharedTask(on: OutsideExecutor(), until: deadline) {
            [self] () -> Result<KeyRotationReport, LarderError> in
            defer { lock.release() }
            do throws(LarderError) { return .success(try await rotate(deadline)) } catch { return .failure(error) }
        }
        guard let result = await task.value(until: deadline) else {
            throw Task.isCancelled
                ? .cancelled
                : LarderError(.timedOut, "\(provider) had not answered by the deadline; run the rotation again")
        }
        return try result.get()
    }

    private func rotate(_ deadline: SuspendingClock.Instant) async throws(LarderError) -> KeyRotationReport {
        reached(.locked)
        let keys = try await newKeys(deadline)
        reached(.keyAdded)
        let now: [StoredPartitionKey]
        let before: [StoredPartitionKey]
        do throws(OperationsError) {
            before = try database.credentials.keys()
            now = try await database.credentials.reseal { [provider] old in
                guard old.sealedWith != keys.current.id, let key = try? KeyRing.unseal(old, with: keys, provider) else {
                    return nil
                }
                return try? KeyRing.seal(key, of: old.partition, with: keys.current, now: old.created).stored
            }
        } catch { throw LarderError(error) }
        reached(.resealed)
        let needed = Set(now.map(\.sealedWith))
        let dropped = keys.previous.map(\.id).filter { !needed.contains($0) }
        if !dropped.isEmpty {
            do throws(KeyError) { try await provider.dropKeys(Set(dropped), within: .until(deadline)) } catch {
                throw LarderError(error)
            }
        }
        reached(.keyDropped)
        let known = Set(before.map(\.sealed))
        return KeyRotationReport(
            current: keys.current.id, resealed: now.count { !known.contains($0.sealed) },
            unopened: now.filter { $0.sealedWith != keys.current.id }.map(\.partition), dropped: dropped)
    }

    private func newKeys(_ deadline: SuspendingClock.Instant) async throws(LarderError) -> MasterKeys {
        do throws(KeyError) {
            try provider.requireOutside(of: database.file.deletingLastPathComponent())
            do throws(KeyError) { return try await provider.addKey(within: .until(deadline)) } catch {
                guard error.code == .cannotRotate else { throw error }
                let keys = try await provider.keys(within: .until(deadline))
                // The key was changed outside already, and stored keys are still sealed with an older one.
                let stored = (try? database.credentials.keys()) ?? []
                guard stored.contains(where: { $0.sealedWith != keys.current.id && keys[$0.sealedWith] != nil }) else {
                    throw error
                }
                return keys
            }
        } catch { throw LarderError(error) }
    }
}
