import Foundation
import LarderFiles
import LarderOperations

/// One partition's credentials: seals and opens them, and puts into quarantine what cannot be opened.
final class CredentialVault: Sendable {
    /// The reading, and the rows that it was read from: what is stored later may be made to depend on them.
    struct Found: Sendable {
        var reading: CredentialReading
        var rows: [SealedCredential] = []
        /// Rows that this reading put into quarantine; where nothing may be written, rows that should be there.
        var suspects: [CredentialTable.Suspect] = []
    }

    /// What was read last, where it was there and could be opened. Behind a reference: many callers look at it at a time.
    final class Known: Sendable {
        /// Nil where it has to be read again.
        fileprivate let mark: CommitMark?
        fileprivate let snapshot: CredentialSnapshot
        let standing: SessionStanding
        let credentials: HeldCredentials
        fileprivate let rows: [SealedCredential]

        fileprivate init(
            _ snapshot: CredentialSnapshot, _ credentials: HeldCredentials, _ rows: [SealedCredential],
            _ mark: CommitMark?
        ) {
            (self.snapshot, self.credentials, self.rows, self.mark) = (snapshot, credentials, rows, mark)
            standing = SessionStanding(snapshot.session)
        }
    }

    static let keyLock = "keys"

    let database: OperationsDatabase
    let partition: String
    let identity: String
    let locks: URL
    let label: String
    private let files: FileSystem
    let ring: KeyRing
    private let owner: SealedBytes.Owner
    private let now: @Sendable () -> Date
    /// Whether credentials whose key is certainly gone are given up.
    private let startsAnew: Bool
    private let known = Locked<Known?>(nil)

    init(
        database: OperationsDatabase, partition: String, identity: String, ring: KeyRing, locks: URL, label: String,
        now: @escaping @Sendable () -> Date, startsAnew: Bool = false, _ files: FileSystem
    ) {
        self.files = files
        self.startsAnew = startsAnew
        self.database = database
        self.partition = partition
        self.identity = identity
        self.ring = ring
        self.locks = locks
        self.label = label
        self.now = now
        owner = .credential(of: partition, identity: identity)
    }

    private var table: CredentialTable { database.credentials }

    /// What was read last, if nothing was committed since, by whatever process. Opens nothing and runs no query.
    func unchanged() throws(OperationsError) -> Known? {
        guard let known = known.withLock(\.self), let mark = known.mark, try database.commitMark() == mark else {
            return nil
        }
        return known
    }

    /// Keeps nothing of them in memory.
    func forget() { known.withLock { $0 = nil } }

    /// Reads them. Foreign or damaged rows are put into quarantine, also while the key cannot be had, as far as that
    /// can be told without it.
    ///
    /// - Parameter lost: What becomes of the session where nothing is left.
    func read(
        until deadline: SuspendingClock.Instant, lost: @escaping SessionChange
    ) async throws(LarderError) -> Found {
        // The loop goes on only where a rotation has changed the key meanwhile; past the deadline a key is unavailable.
        while true {
            // Before they are read: a commit between the two is read once more.
            let mark = try translating { () throws(OperationsError) in try database.commitMark() }
            let snapshot = try snapshot()
            // Most commits are about something else.
            let same = known.withLock { known -> Known? in
                guard let last = known, last.snapshot == snapshot else { return nil }
                known = Known(snapshot, last.credentials, last.rows, mark)
                return known
            }
            if let same { return Found(reading: .present(same.credentials.value), rows: same.rows) }
            guard let found = try await read(snapshot, until: deadline, lost: lost) else { continue }
            var new: Known?
            if case .present(let credentials) = found.reading, found.suspects.isEmpty {
                new = Known(snapshot, HeldCredentials(credentials), found.rows, mark)
            }
            known.withLock { [new] in $0 = new }
            return found
        }
    }

    /// - Returns: Nil where the program's key is missing and the partition's is another one by now.
    private func read(
        _ snapshot: CredentialSnapshot, until deadline: SuspendingClock.Instant, lost: @escaping SessionChange
    ) async throws(LarderError) -> Found? {
        guard !snapshot.credentials.isEmpty else { return Found(reading: .absent) }
        var found = Found(reading: .absent)
        var damagedKey: (key: StoredPartitionKey, reason: String)?
        for row in snapshot.credentials {
            if let reason = fault(of: row, in: snapshot) { found.suspect(row, reason) } else { found.rows.append(row) }
        }
        let isUser = SessionStanding(snapshot.session).state != .guest
        if isUser { found.requireUserPool() }
        if let stored = snapshot.key, !found.rows.isEmpty {
            do throws(KeyError) {
                found.open(of: owner, with: try await ring.open(stored, until: deadline))
            } catch {
                // A rotation seals it anew, and has the provider forget the old key.
                if error.code == .unknownKey, try self.snapshot().key != stored { return nil }
                if let cause = error.cause as? SealError {
                    damagedKey = (stored, cause.reason.rawValue)
                    for row in found.rows { found.suspect(row, .keyDamaged) }
                    found.rows = []
                } else if startsAnew, [.missing, .unknownKey].contains(error.code) {
                    for row in found.rows { found.suspect(row, .keyGone) }
                    found.rows = []
                } else {
                    found.reading = .unavailable(error)
                }
            }
        }
        if isUser { found.requireUserPool() }
        if !database.options.isReadOnly, !found.suspects.isEmpty {
            let suspects = found.suspects
            do throws(OperationsError) {
                _ = try await table.quarantine(
                    suspects, key: damagedKey, in: partition, of: identity, now: now(), session: lost)
            } catch { throw LarderError(error) }
        }
        return found
    }

    /// What is amiss with a row, as far as that can be told without a key.
    private func fault(of row: SealedCredential, in snapshot: CredentialSnapshot) -> QuarantineReason? {
        if row.identity != identity { return .otherEnvironment }
        if Credentials.Part(rawValue: row.kind) == nil { return .newerFormat }
        return SealedBytes.fault(of: row.sealed, owner: owner) ?? (snapshot.key == nil ? .keyDestroyed : nil)
    }

    /// Stores sealed credentials in one transaction, in the place of whatever there is.
    typealias Commit = (CredentialReplacement) async throws(OperationsError) -> CredentialTable.Outcome

    /// Seals and stores credentials in the place of the present ones, together with the change of the session, in one
    /// transaction: if anything fails, the old credentials stay.
    ///
    /// - Parameter expected: What must be there; nil for whatever is.
    /// - Returns: False where something else is there than was expected.
    /// - Throws: `.sessionState` where nothing is expected and the change has no session for what is given.
    func store(
        _ credentials: Credentials, expecting expected: [SealedCredential]? = nil,
        until deadline: SuspendingClock.Instant, session change: @escaping SessionChange
    ) async throws(LarderError) -> Bool {
        while true {
            let outcome: CredentialTable.Outcome =
                if let expected {
                    try await put(credentials, expecting: expected, until: deadline, session: change)
                } else {
                    try await put(credentials, until: deadline, session: change) {
                        (new) async throws(OperationsError) in try await table.replace(by: new)
                    }
                }
            switch outcome {
            case .stored: return true
            case .changed: return false
            case .refused:
                throw LarderError(
                    .sessionState, "Another session has begun meanwhile; sign out before a guest takes over")
            case .otherKey:
                // Where it was sealed anew or replaced, the rows tell whether they are the expected ones.
                if expected != nil, try snapshot().key == nil { return false }
                try requireTime(until: deadline)
            }
        }
    }

    func requireTime(until deadline: SuspendingClock.Instant) throws(LarderError) {
        guard .now < deadline else {
            throw LarderError(.timedOut, "The key of partition \(partition) was replaced until the deadline")
        }
    }

    /// Replaces the credentials that are expected, and seals the new ones with their key.
    private func put(
        _ credentials: Credentials, expecting expected: [SealedCredential], until deadline: SuspendingClock.Instant,
        session change: @escaping SessionChange
    ) async throws(LarderError) -> CredentialTable.Outcome {
        let snapshot = try snapshot()
        guard snapshot.isKnown else { throw LarderError(OperationsError.forgotten(partition)) }
        guard let stored = snapshot.key else { return .otherKey }
        let key: PartitionKey
        do throws(KeyError) { key = try await ring.open(stored, until: deadline) } catch {
            // A rotation has sealed it anew: the caller takes the key of now.
            if error.code == .unknownKey, try self.snapshot().key != stored { return .otherKey }
            throw LarderError(error)
        }
        let new = try seal(credentials, with: key, session: change)
        return try await commit(new) { (new) async throws(OperationsError) in
            try await table.replace(by: new, expecting: expected)
        }
    }

    /// In the place of whatever there is: with a new key where none can be opened, and that is certain.
    ///
    /// - Parameter store: Is called while no process can rotate the program's keys, where the key is a new one.
    func put(
        _ credentials: Credentials, until deadline: SuspendingClock.Instant, session change: @escaping SessionChange,
        by store: Commit
    ) async throws(LarderError) -> CredentialTable.Outcome {
        if case .opened(let key) = try await key(until: deadline) {
            return try await commit(try seal(credentials, with: key, session: change), by: store)
        }
        do throws(KeyError) { try ring.provider.requireOutside(of: database.file.deletingLastPathComponent()) } catch {
            throw LarderError(error)
        }
        // The program's keys must not be rotated between looking at them and storing what is sealed with one.
        let lock = try await HeldLock.acquire(
            Self.keyLock, in: locks, files, for: "making a partition's key", label: label, until: deadline)
        defer { lock.release() }
        let making: CredentialTable.KeyMaking
        // Another may have made one meanwhile.
        switch try await key(until: deadline) {
        case .opened(let key):
            return try await commit(try seal(credentials, with: key, session: change), by: store)
        case .none: making = .init(now: now())
        case .lost(let old, let reason): making = .init(replacing: old, reason: reason.rawValue, now: now())
        }
        let new: PartitionKey
        do throws(KeyError) { new = try await ring.make(now: now(), until: deadline) } catch {
            throw LarderError(error)
        }
        let outcome = try await commit(
            try seal(credentials, with: new, making: making, session: change), by: store)
        if outcome == .stored { ring.remember(new) }
        return outcome
    }

    private func seal(
        _ credentials: Credentials, with key: PartitionKey, making: CredentialTable.KeyMaking? = nil,
        session change: @escaping SessionChange
    ) throws(LarderError) -> CredentialReplacement {
        do {
            let rows = try credentials.parts.map { kind, bytes in
                SealedCredential(
                    kind: kind.rawValue, identity: identity,
                    sealed: try SealedBytes.seal(bytes, of: owner, name: kind.rawValue, with: key.key),
                    created: now(), updated: now())
            }
            return CredentialReplacement(
                partition: partition, credentials: rows, key: key.stored, making: making, session: change)
        } catch { throw LarderError(KeyError(.invalid, "Credentials cannot be sealed", cause: error)) }
    }

    private func commit(
        _ new: CredentialReplacement, by store: Commit
    ) async throws(LarderError) -> CredentialTable.Outcome {
        do throws(OperationsError) { return try await store(new) } catch { throw LarderError(error) }
    }

    private func snapshot() throws(LarderError) -> CredentialSnapshot {
        try translating { () throws(OperationsError) in try table.snapshot(of: partition) }
    }

    /// The partition's key, as far as one can be had.
    private enum KnownKey {
        case none
        case opened(PartitionKey)
        /// Nothing that it has sealed can be opened any more, and that is certain.
        case lost(StoredPartitionKey, QuarantineReason)
    }

    private func key(until deadline: SuspendingClock.Instant) async throws(LarderError) -> KnownKey {
        guard let stored = try snapshot().key else { return .none }
        do throws(KeyError) { return .opened(try await ring.open(stored, until: deadline)) } catch {
            if error.cause is SealError { return .lost(stored, .keyDamaged) }
            guard [.missing, .unknownKey].contains(error.code) else { throw LarderError(error) }
            return .lost(stored, .keyGone)
        }
    }
}

extension CredentialVault.Found {
    fileprivate mutating func suspect(_ row: SealedCredential, _ reason: QuarantineReason) {
        suspects.append(.init(row, reason: reason.rawValue))
    }

    /// Without the user's tokens the other credentials belong to no user: they would be another's proof in a user's
    /// name.
    fileprivate mutating func requireUserPool() {
        guard suspects.contains(where: { $0.credential.kind == Credentials.Part.userPool.rawValue }) else { return }
        for row in rows { suspect(row, .incomplete) }
        rows = []
        reading = .absent
    }

    /// Opens the rows; rows that cannot be opened become suspects.
    fileprivate mutating func open(of owner: SealedBytes.Owner, with key: PartitionKey) {
        var (credentials, good): (Credentials, [SealedCredential]) = (Credentials(), [])
        for row in rows {
            guard let kind = Credentials.Part(rawValue: row.kind) else { continue }
            do throws(SealError) {
                let bytes = try SealedBytes.open(row.sealed, of: owner, name: row.kind, with: key.key)
                guard credentials.take(kind, bytes) else { throw SealError(reason: .newerFormat) }
                good.append(row)
            } catch { suspect(row, error.reason) }
        }
        rows = good
        reading = credentials.isEmpty ? .absent : .present(credentials)
    }
}

/// Runs `body` and turns what the queue's layer throws into this layer's.
func translating<Value>(_ body: () throws(OperationsError) -> Value) throws(LarderError) -> Value {
    do throws(OperationsError) { return try body() } catch { throw LarderError(error) }
}
