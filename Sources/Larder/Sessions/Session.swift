package import Foundation
package import LarderFiles
package import LarderOperations
package import Logging
import Synchronization

/// Whether a user is signed in to a partition, and what proves it.
///
/// ```swift
/// let session = app.session
/// try await session.signIn(credentials)
/// for await state in session.changes { show(state) }
/// let proof = try await session.credentials(within: .seconds(10))   // refreshed if they have to be
/// ```
///
/// Being offline signs no user out, and neither does a key store that is locked: only a refusal by the server does.
/// Nothing waits past its deadline.
public final class Session: Sendable {
    /// What becomes of a session whose credentials are there, and the program's key for them is certainly not: the
    /// store came from a backup or another device, or the key was removed.
    public enum MissingKey: Sendable, Hashable {
        /// The user stays signed in: the credentials are unavailable until the key is back, or the user signs in again.
        case staySignedIn
        /// The credentials are put into quarantine as `keyGone`, and the user is signed out.
        case startAnew
    }

    /// How a session behaves.
    public struct Options: Sendable {
        /// Credentials that end within this time are refreshed before they are used, so that they are still good when
        /// they arrive, and by a clock that differs a little.
        public var margin = Duration.seconds(60)
        /// How long the identity provider may take for an answer.
        public var refreshTimeout = Duration.seconds(30)
        /// How long a key provider may take for an answer that a caller can still use.
        public var keyTimeout = Duration.seconds(30)
        /// What becomes of a session whose key is gone.
        public var missingKey = MissingKey.staySignedIn
        /// The program's name, for the errors of other processes that wait for this one.
        package var label = "larder"
        /// Where failures are logged that no caller can receive, such as that a credential was put into quarantine.
        package var logger = Logger(label: "larder")
        /// The time of day.
        package var now: @Sendable () -> Date = { Date() }
        /// Tests put their faults in its place.
        package var files = FileSystem()
        /// The store's.
        var instruments: Instruments?
        /// The store's: it waits for refreshes that are under way.
        var suspension = Suspension()

        /// A margin of a minute, and half a minute for each provider.
        public init() {}
    }

    /// The suffix of the kernel's lock that a process holds while it refreshes a part of a partition's credentials.
    static func lockSuffix(of part: Credentials.Part) -> String {
        switch part {
        case .userPool: ".refresh"
        case .cloud: ".refresh-cloud"
        }
    }

    let database: OperationsDatabase
    let partition: String
    let locks: URL
    let provider: (any IdentityProvider)?
    let options: Options
    let vault: CredentialVault
    let executor: OutsideExecutor
    let refreshing = Locked<[Credentials.Part: Refreshing]>([:])
    let unsaved: UnsavedCredentials
    /// Notifies when the state may be another one, and when waits are to end.
    let changeSignal = ChangeSignal()
    private let watching = Locked(Watching())
    private let signInCount = Atomic(0)

    struct Watching {
        var published: SessionStanding?
        var next = 0
        var streams: [Int: AsyncStream<SessionState>.Continuation] = [:]
        var standings: [Int: AsyncStream<SessionStanding>.Continuation] = [:]
        /// How often callers that wait for a sign-in were released.
        var releases = 0
        var isClosed = false
    }

    /// - Parameters:
    ///   - identity: The fingerprint of identity of the partition's environment: credentials sealed under another are
    ///     foreign.
    ///   - keys: Asked when credentials are read or stored, and not before.
    ///   - provider: Nil where credentials are only given, and never refreshed from here.
    ///   - locksFolder: The folder of the store's locks.
    package convenience init(
        database: OperationsDatabase, partition: String, identity: String, keys: any KeyProvider,
        provider: (any IdentityProvider)?, locksFolder: URL, options: Options = Options()
    ) {
        self.init(
            database: database, partition: partition, identity: identity, keys: keys, provider: provider,
            locksFolder: locksFolder, options: options, unsaved: UnsavedCredentials())
    }

    /// - Parameter unsaved: What an earlier session of the same partition and identity could not store.
    init(
        database: OperationsDatabase, partition: String, identity: String, keys: any KeyProvider,
        provider: (any IdentityProvider)?, locksFolder: URL, options: Options, unsaved: UnsavedCredentials
    ) {
        self.unsaved = unsaved
        self.database = database
        self.partition = partition
        self.provider = provider
        self.options = options
        locks = locksFolder
        executor = OutsideExecutor()
        let ring = KeyRing(keys, partition: partition, executor: executor, keyTimeout: options.keyTimeout)
        vault = CredentialVault(
            database: database, partition: partition, identity: identity, ring: ring, locks: locksFolder,
            label: options.label, now: options.now, startsAnew: options.missingKey == .startAnew, options.files)
    }

    /// Whether a user is signed in, as it is stored now, by whatever process; unknown where that cannot be read.
    public var state: SessionState { (try? standing())?.state ?? .unknown }

    /// Whether a user is signed in now; false where that cannot be told.
    public var isSignedIn: Bool { state == .signedIn }

    /// The state, since when, why, and how the user signed in. Reads one row.
    ///
    /// - Throws: `.parked`, `operations.…`.
    public func standing() throws(LarderError) -> SessionStanding {
        if let known = try unchanged() { return known.standing }
        return try translating { () throws(OperationsError) in
            SessionStanding(try database.credentials.session(of: partition))
        }
    }

    /// Where the session stands, and the credentials, where they were read before and are the same still.
    func unchanged() throws(LarderError) -> CredentialVault.Known? {
        if watching.withLock({ $0.isClosed }) { throw .parked }
        return try translating { () throws(OperationsError) in try vault.unchanged() }
    }

    /// The state now, and each one that it changes to, in this process or another. A slow reader gets the newest state,
    /// and not each one between. Where the state cannot be read now, the stream begins with the one that was read last,
    /// if any was. It ends when the partition is parked.
    public var changes: AsyncStream<SessionState> {
        follow(\.streams) { $0.state }
    }

    /// As `changes`, with the time, the reason and how the user signed in. Another sign-in is told also where the state
    /// stays the same.
    public var standings: AsyncStream<SessionStanding> { follow(\.standings) { $0 } }

    private func follow<Element>(
        _ streams: any WritableKeyPath<Watching, [Int: AsyncStream<Element>.Continuation]> & Sendable,
        _ element: (SessionStanding) -> Element
    ) -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(of: Element.self, bufferingPolicy: .bufferingNewest(1))
        let number = watching.withLock { watching -> Int? in
            guard !watching.isClosed else { return nil }
            // Read under the lock, where no other thread publishes, so that the newest state is published last.
            if let standing = try? stored() { publish(standing, in: &watching) }
            watching.next += 1
            watching[keyPath: streams][watching.next] = continuation
            // That it cannot be read does not mean that no user ever signed in.
            if let published = watching.published { continuation.yield(element(published)) }
            return watching.next
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.watching.withLock { $0[keyPath: streams].removeValue(forKey: number) }
        }
        return stream
    }

    /// Looks whether the state has changed, in another process above all, and tells the readers of `changes`. Reads one
    /// row; does nothing where that cannot be read.
    package func noticeChanges() {
        let hasChanged = watching.withLock { watching in
            guard !watching.isClosed, let standing = try? stored() else { return false }
            return publish(standing, in: &watching)
        }
        if hasChanged { changeSignal.notify() }
    }

    private func stored() throws(OperationsError) -> SessionStanding {
        SessionStanding(try database.credentials.session(of: partition))
    }

    @discardableResult
    private func publish(_ standing: SessionStanding, in watching: inout Watching) -> Bool {
        guard let old = watching.published, old.state == standing.state else {
            watching.published = standing
            for continuation in watching.streams.values { continuation.yield(standing.state) }
            for continuation in watching.standings.values { continuation.yield(standing) }
            return true
        }
        guard old != standing else { return false }
        watching.published = standing
        for continuation in watching.standings.values { continuation.yield(standing) }
        return false
    }

    /// Ends the waits of all callers that wait for a sign-in: they get `larder.waitReleased`.
    public func releaseWaiters() {
        watching.withLock { $0.releases += 1 }
        changeSignal.notify()
    }

    var releases: Int { watching.withLock { $0.releases } }
    /// How often this process has signed a user or a guest in or out.
    var signIns: Int { signInCount.load(ordering: .acquiring) }
    func countSignIn() { signInCount.add(1, ordering: .acquiringAndReleasing) }

    /// Ends the streams, and every wait but for a refresh with `.parked`, as does each call from now on. A refresh that
    /// is under way ends as it would have, and is stored; who waits for it gets what it gives.
    package func close() {
        let (streams, standings) = watching.withLock { watching in
            watching.isClosed = true
            defer { (watching.streams, watching.standings) = ([:], [:]) }
            return (watching.streams.values.map { $0 }, watching.standings.values.map { $0 })
        }
        countSignIn()
        vault.forget()
        for continuation in streams { continuation.finish() }
        for continuation in standings { continuation.finish() }
        changeSignal.notify()
    }

    func change(by event: SessionEvent, reason: String? = nil) -> SessionChange {
        SessionStanding.change(by: event, reason: reason, now: options.now())
    }
}
