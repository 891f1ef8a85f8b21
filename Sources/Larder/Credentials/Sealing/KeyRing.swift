import Crypto
import Foundation
import LarderFiles
import LarderOperations

/// The key of one partition's credentials: gets it opened with the program's key once, and remembers it.
///
/// Callers wait for a provider up to their own deadlines. A provider that answers later has answered for the next
/// caller. Of a provider that never answers, at most a few calls are left behind.
final class KeyRing: Sendable {
    private struct State {
        var key: PartitionKey?
        /// For which sealed key, and the calls of the provider that have not ended.
        var openings: [(sealed: [UInt8], task: SharedTask<Result<PartitionKey, KeyError>>)] = []
    }

    let provider: any KeyProvider
    let executor: OutsideExecutor
    private let partition: String
    private let owner: SealedBytes.Owner
    /// How long a provider may take for an answer that a caller can still use.
    private let keyTimeout: Duration
    private let state = Locked(State())

    private static let mostCalls = 4

    init(_ provider: any KeyProvider, partition: String, executor: OutsideExecutor, keyTimeout: Duration) {
        self.provider = provider
        self.executor = executor
        self.partition = partition
        self.keyTimeout = keyTimeout
        owner = .partitionKey(of: partition)
    }

    /// Opens the partition's key; at once if that was done before.
    ///
    /// - Throws: As the provider; `.unknownKey`; `.damaged` with a `SealError` as the cause where the fault is in the
    ///   stored key; `.timedOut`, `.cancelled`.
    func open(
        _ stored: StoredPartitionKey, until deadline: SuspendingClock.Instant
    ) async throws(KeyError) -> PartitionKey {
        let task = state.withLock { state -> SharedTask<Result<PartitionKey, KeyError>>? in
            if state.key?.stored.sealed == stored.sealed { return nil }
            state.openings.removeAll { $0.task.isFinished }
            let mine = state.openings.last { $0.sealed == stored.sealed }
            if let mine, mine.task.deadline > .now || state.openings.count >= Self.mostCalls { return mine.task }
            let task = SharedTask(on: executor, until: .now + keyTimeout) { [self] in await unseal(stored) }
            state.openings.append((stored.sealed, task))
            return task
        }
        guard let task else {
            guard let key = state.withLock({ $0.key }), key.stored.sealed == stored.sealed else {
                return try await open(stored, until: deadline)
            }
            return key
        }
        guard let result = await task.value(until: deadline) else { throw Self.unanswered(provider) }
        return try result.get()
    }

    /// Seals a new key for the partition, which is not stored yet. The program's key is made if there is none.
    ///
    /// - Throws: As the provider; `.timedOut`, `.cancelled`.
    func make(now: Date, until deadline: SuspendingClock.Instant) async throws(KeyError) -> PartitionKey {
        let task = SharedTask(on: executor, until: .now + keyTimeout) { [self] () -> Result<PartitionKey, KeyError> in
            let deadline = SuspendingClock.now + keyTimeout
            do throws(KeyError) {
                let keys: MasterKeys
                do throws(KeyError) { keys = try await provider.keys(within: .until(deadline)) } catch {
                    guard error.code == .missing else { throw error }
                    keys = try await provider.makeKey(within: .until(deadline))
                }
                let key = SymmetricKey(size: .bits256)
                return .success(try Self.seal(key, of: partition, with: keys.current, now: now))
            } catch { return .failure(error) }
        }
        guard let result = await task.value(until: deadline) else { throw Self.unanswered(provider) }
        return try result.get()
    }

    /// Remembers a key that was made and stored.
    func remember(_ key: PartitionKey) { state.withLock { $0.key = key } }

    private func unseal(_ stored: StoredPartitionKey) async -> Result<PartitionKey, KeyError> {
        do throws(KeyError) {
            let keys = try await provider.keys(within: keyTimeout)
            let key = PartitionKey(try Self.unseal(stored, with: keys, provider), stored: stored)
            remember(key)
            return .success(key)
        } catch { return .failure(error) }
    }

    static func unseal(
        _ stored: StoredPartitionKey, with keys: MasterKeys, _ provider: any KeyProvider
    ) throws(KeyError) -> SymmetricKey {
        guard let master = keys[stored.sealedWith] else {
            throw KeyError(
                .unknownKey,
                "\(provider) lacks key \(stored.sealedWith), with which partition "
                    + "\(stored.partition) is sealed; put it back")
        }
        do throws(SealError) {
            let bytes = try SealedBytes.open(
                stored.sealed, of: .partitionKey(of: stored.partition), with: master.key)
            guard bytes.count == MasterKey.byteCount else { throw SealError(reason: .damaged) }
            return SymmetricKey(data: bytes)
        } catch {
            throw KeyError(
                .damaged, "The sealed key of partition \(stored.partition) cannot be opened (\(error.reason.rawValue))",
                cause: error)
        }
    }

    static func seal(
        _ key: SymmetricKey, of partition: String, with master: MasterKey, now: Date
    ) throws(KeyError) -> PartitionKey {
        do {
            let sealed = try SealedBytes.seal(
                key.withUnsafeBytes { Array($0) }, of: .partitionKey(of: partition), with: master.key)
            return PartitionKey(
                key,
                stored: StoredPartitionKey(
                    partition: partition, sealedWith: master.id, sealed: sealed, created: now))
        } catch { throw KeyError(.invalid, "The key of partition \(partition) cannot be sealed", cause: error) }
    }

    private static func unanswered(_ provider: any KeyProvider) -> KeyError {
        Task.isCancelled
            ? KeyError(.cancelled, "The task was cancelled")
            : KeyError(.timedOut, "\(provider) had not answered by the deadline; wait longer, or unlock it")
    }
}
