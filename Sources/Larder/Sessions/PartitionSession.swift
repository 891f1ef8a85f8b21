import Foundation
import LarderFiles
import LarderOperations

/// The session of a partition that is in use: made when it is asked for first, and anew where the environment's users
/// are signed in by another pool since.
final class PartitionSession: Sendable {
    private struct Kept {
        /// Nil after it was over.
        var session: Session?
        var identity: String
        var unsaved = UnsavedCredentials()
        /// Of the commits when the identity was read.
        var mark: CommitMark?
    }

    private let name: String
    private let folder: URL
    private let options: Store.Options
    private let kept = Locked<Kept?>(nil)

    init(name: String, folder: URL, options: Store.Options) {
        self.name = name
        self.folder = folder
        self.options = options
    }

    func session(_ operationsStore: OperationsStore) throws(LarderError) -> Session {
        let database = try operationsStore.database()
        let mark: CommitMark?
        let (partition, identity): (StoredPartition?, String)
        do {
            mark = try database.commitMark()
            let same = kept.withLock { kept in mark != nil && kept?.mark == mark ? kept?.session : nil }
            if let same { return same }
            partition = try database.environments.partition(name)
            let environment = try partition?.environment.flatMap { (name) throws in
                try database.environments.find(name)
            }
            identity = environment?.fingerprints.identity ?? Self.unnamedIdentity
        } catch { throw LarderError(translating: error) }
        let (session, old) = kept.withLock { kept -> (Session, Session?) in
            if kept?.identity == identity, let session = kept?.session {
                kept?.mark = mark
                return (session, nil)
            }
            // Credentials that were got for another identity's rows are of no use.
            var new = Kept(identity: identity, mark: mark)
            if let kept, kept.identity == identity { new.unsaved = kept.unsaved }
            var sessionOptions = options.session
            sessionOptions.label = options.label
            sessionOptions.instruments = options.instruments
            sessionOptions.logger = options.logger
            sessionOptions.now = options.now
            sessionOptions.files = options.files
            sessionOptions.suspension = operationsStore.suspension
            // One that has nothing in the database yet is that of a program which names no environment.
            let stored = partition ?? StoredPartition(name: name, environment: nil, user: nil)
            let provider = options.identityProvider(PartitionIdentity(stored))
            let session = Session(
                database: database, partition: name, identity: identity,
                keys: options.keys(besides: folder), provider: provider,
                locksFolder: folder.appending(path: "locks"), options: sessionOptions, unsaved: new.unsaved)
            defer {
                new.session = session
                kept = new
            }
            return (session, kept?.session)
        }
        old?.close()
        return session
    }

    /// What credentials of a program that names no environment are bound to.
    private static let unnamedIdentity = "none"

    /// Tells the readers of the session's changes what another process has changed.
    func noticeChanges() { kept.withLock { $0?.session }?.noticeChanges() }

    /// Ends the session; the next one goes on with what this one could not store.
    func park() {
        kept.withLock { kept in
            defer { kept?.session = nil }
            return kept?.session
        }?.close()
    }

    /// Ends the session for good.
    func close() {
        park()
        kept.withLock { $0 = nil }
    }
}

extension PartitionCore {
    /// What is stored of the session, in whatever process it began; nil where nothing is. Reads one row, and no key.
    ///
    /// A runner asks, to begin again for a user who has signed in. A damaged row is no such user's: it ends no runner,
    /// and ``Partition/session`` and a check tell of it.
    func sessionStanding() throws(LarderError) -> SessionStanding? {
        guard let database = try operationsStore.database(making: false) else { return nil }
        do { return try database.credentials.session(of: name).map { SessionStanding($0) } } catch {
            if error.code == .damagedRow { return nil }
            throw LarderError(translating: error)
        }
    }
}

extension Partition {
    /// Whether a user is signed in, and what proves it.
    ///
    /// Uses no network and reads no key. It is the same for all handles of the partition, and is over when the
    /// partition is parked: ask for it again afterwards.
    ///
    /// - Throws: `.parked`; `operations.…` where it cannot be read.
    public var session: Session {
        get throws(LarderError) {
            let session = try unfollowedSession
            // Reading the session may have made the database, to which other processes may write from now on.
            core.followOthers()
            return session
        }
    }

    /// As `session`, without a look at what other processes do with it.
    var unfollowedSession: Session {
        get throws(LarderError) {
            try core.requireCurrent()
            let session = try core.session.session(core.operationsStore)
            // Another thread may have parked the partition before this session was there to be closed.
            guard !core.isParked else {
                core.session.park()
                throw .parked
            }
            return session
        }
    }
}
