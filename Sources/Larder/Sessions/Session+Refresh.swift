import LarderOperations
import Synchronization

extension Session {
    /// The refresh of a part that is under way, if there is one.
    struct Refreshing {
        var task: SharedTask<RefreshOutcome>?
        /// What the refresh is doing, for the errors of callers that have waited too long.
        var stage = ""
    }

    /// Gets a part anew, by one refresh for all who ask. What it got is stored when this returns.
    ///
    /// - Returns: The credentials as they are stored then; nil where something else is to be read now: no user is signed
    ///   in any more, or another is.
    func refresh(
        _ part: Credentials.Part, until deadline: SuspendingClock.Instant
    ) async throws(LarderError) -> HeldCredentials? {
        let signIns = signIns
        let task = try sharedRefresh(part, unless: .nothing)
        return try refreshed(part, await task.value(until: deadline), since: signIns)
    }

    /// What a refresh has led to, as `refresh` answers it.
    ///
    /// - Parameters:
    ///   - outcome: Nil where the caller waits no longer.
    ///   - signIns: Before the caller waited.
    func refreshed(
        _ part: Credentials.Part, _ outcome: RefreshOutcome?, since signIns: Int
    ) throws(LarderError) -> HeldCredentials? {
        guard let outcome else {
            if Task.isCancelled { throw .cancelled }
            let stage = refreshing.withLock { $0[part]?.stage ?? "" }
            throw LarderError(.timedOut, "The caller waited for new credentials: \(stage); it goes on")
        }
        let new = try outcome.result.get()
        // They were stored while the caller waited, and need not be read again, unless a user has come or gone here.
        return signIns == self.signIns ? new : nil
    }

    /// The refresh that is under way, or begins.
    ///
    /// - Parameter refused: Credentials that are of no use although they are good by their time.
    func sharedRefresh(
        _ part: Credentials.Part, unless refused: RefusedCredentials
    ) throws(LarderError) -> SharedTask<RefreshOutcome> {
        guard let provider else {
            throw LarderError(
                .noIdentityProvider,
                "The credentials have ended, and there is no identity provider to ask for new ones")
        }
        if database.options.isReadOnly {
            throw LarderError(
                OperationsError(
                    .notWritable, "The credentials have ended, and a store that is read only gets no new ones"))
        }
        return refreshing.withLock { refreshing in
            if let task = refreshing[part]?.task, !task.isFinished { return task }
            let end = SuspendingClock.now + options.refreshTimeout
            let task = SharedTask(on: executor, until: end) { [self] in
                do throws(LarderError) {
                    let new = try await refresh(part, by: provider, unless: refused, until: end)
                    return RefreshOutcome(.success(new.map(HeldCredentials.init)))
                } catch {
                    return RefreshOutcome(.failure(error))
                }
            }
            refreshing[part, default: Refreshing()].task = task
            return task
        }
    }

    private func refresh(
        _ part: Credentials.Part, by provider: any IdentityProvider, unless refused: RefusedCredentials,
        until end: SuspendingClock.Instant
    ) async throws(LarderError) -> Credentials? {
        // A token that was rotated must be stored before the files are given back.
        guard let work = options.suspension.begin() else { throw .suspended }
        defer { options.suspension.end(work) }
        @Sendable func stage(_ stage: String) { refreshing.withLock { $0[part]?.stage = stage } }
        if let unsaved = unsaved[part] {
            stage("the new credentials to be stored")
            return try await save(unsaved, of: part, until: end)
        }
        stage("the lock of the refresh")
        let lock = try await HeldLock.acquire(
            partition + Self.lockSuffix(of: part), in: locks, options.files, for: "refreshing credentials",
            label: options.label,
            until: end, waiting: { stage("the lock of the refresh, which is held by \($0)") })
        var isKept = false
        defer { if !isKept { lock.release() } }
        stage("the key provider")
        let found = try await read(until: end)
        guard case .present(let old) = found.reading else {
            // Whatever it is, the caller finds it as well.
            if case .unavailable(let error) = found.reading { throw LarderError(error) }
            return nil
        }
        // Another has refreshed them meanwhile.
        if old.has(part, freshAt: options.now(), margin: options.margin), !refused.has(old) { return old }
        guard try standing().state.allows(part) else { return nil }
        stage("the identity provider")
        let asked = SuspendingClock.now
        let answer = await cancelled(at: end) { () -> Result<Credentials, IdentityError> in
            do throws(IdentityError) {
                return .success(try await provider.refresh(part, of: old, within: .until(end)))
            } catch {
                return .failure(error)
            }
        }
        if let instruments = options.instruments {
            let isDone = if case .success? = answer { true } else { false }
            instruments.noteRefresh(.now - asked, isDone: isDone)
        }
        switch answer ?? .failure(IdentityError(.unreachable, "The identity provider has given no answer")) {
        case .success(let new):
            guard new.contains(part) else {
                throw LarderError(IdentityError(.unusable, "The identity provider gave other credentials than asked"))
            }
            isKept = true
            stage("the new credentials to be stored")
            return try await save((new, old, found.rows, lock), of: part, until: .now + options.keyTimeout)
        case .failure(let error):
            // What the identity pool refuses says nothing of a user whom the user pool knows.
            let signsOut = error.event != .federatedRefused || old.userPool == nil
            guard error.event != .unreachable, signsOut else { throw LarderError(error) }
            do throws(OperationsError) {
                try await database.credentials.changeSession(
                    of: partition, expecting: found.rows, change(by: error.event, reason: error.message))
            } catch { throw LarderError(error) }
            noticeChanges()
            // From now on the callers wait for a sign-in.
            return nil
        }
    }

    /// Stores new credentials in the place of the ones that were refreshed, and frees the lock once that is done.
    private func save(
        _ new: UnsavedCredentials.Value, of part: Credentials.Part, until end: SuspendingClock.Instant
    ) async throws(LarderError) -> Credentials? {
        var unstored = new
        unsaved[part] = unstored
        var stored: Credentials
        do throws(LarderError) {
            while true {
                stored = unstored.new.completed(by: unstored.old)
                let isStored = try await vault.store(
                    stored, expecting: unstored.rows, until: end, session: change(by: .refreshed))
                if isStored { break }
                // The other part may be another by now: a token that was rotated must not be lost over that. Where the
                // tokens themselves are others, a user has signed in or out, and the new ones belong to no session.
                let found = try await read(until: end)
                if case .unavailable(let error) = found.reading { throw LarderError(error) }
                guard part == .userPool, case .present(let old) = found.reading, old.userPool == unstored.old.userPool
                else {
                    unsaved[part] = nil
                    unstored.lock.release()
                    return nil
                }
                (unstored.old, unstored.rows) = (old, found.rows)
                unsaved[part] = unstored
            }
        } catch {
            // The partition was forgotten, or its environment's users are signed in by another pool: never again.
            if let cause = error.cause as? OperationsError, [.unknownPartition, .parked].contains(cause.code) {
                unsaved[part] = nil
                unstored.lock.release()
            }
            throw error
        }
        unsaved[part] = nil
        unstored.lock.release()
        return stored
    }
}

/// What a refresh has led to: the credentials, or nil where the caller has to look again. Behind a reference, since many
/// callers take it at the same time.
final class RefreshOutcome: Sendable {
    let result: Result<HeldCredentials?, LarderError>

    init(_ result: Result<HeldCredentials?, LarderError>) { self.result = result }
}

/// What a server has refused although it is good by its time.
enum RefusedCredentials: Sendable {
    case nothing
    case tokens(Credentials.UserPoolTokens)
    case cloud(Credentials.CloudCredentials)

    /// Whether it is what credentials have.
    func has(_ credentials: Credentials) -> Bool {
        switch self {
        case .nothing: return false
        case .tokens(let refused):
            return credentials.userPool?.accessToken == refused.accessToken
                || credentials.userPool?.idToken == refused.idToken
        case .cloud(let refused):
            return credentials.cloud?.accessKeyID == refused.accessKeyID
                && credentials.cloud?.sessionToken == refused.sessionToken
        }
    }
}
