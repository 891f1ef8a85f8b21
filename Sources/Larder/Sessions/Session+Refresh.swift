import LarderOperations
import Synchronization

extension Session {
    /// The refresh that is under way, if there is one.
    struct Refreshing {
        var task: SharedTask<Result<Credentials?, LarderError>>?
        /// What the refresh is doing, for the errors of callers that have waited too long.
        var stage = ""
    }

    /// New credentials, by one refresh for all who ask; nil where there is something else to be read now.
    func refreshed(until deadline: ContinuousClock.Instant) async throws(LarderError) -> Credentials? {
        guard let provider else {
            throw LarderError(
                .noIdentityProvider,
                "the credentials have ended, and there is no identity provider to ask for new ones")
        }
        if database.options.isReadOnly {
            throw LarderError(
                OperationsError(
                    .notWritable, "the credentials have ended, and a store that is read only gets no new ones"))
        }
        let task = refreshing.withLock { refreshing in
            if let task = refreshing.task, !task.isFinished { return task }
            let end = ContinuousClock.now + options.refreshTimeout
            let task = SharedTask(on: executor, until: end) { [self] () -> Result<Credentials?, LarderError> in
                do throws(LarderError) { return .success(try await refresh(by: provider, until: end)) } catch {
                    return .failure(error)
                }
            }
            refreshing.task = task
            return task
        }
        guard let result = await task.value(until: deadline) else {
            if Task.isCancelled { throw .cancelled }
            throw LarderError(.timedOut, "waited for new credentials: \(refreshing.withLock { $0.stage }); it goes on")
        }
        return try result.get()
    }

    private func refresh(
        by provider: any IdentityProvider, until end: ContinuousClock.Instant
    ) async throws(LarderError) -> Credentials? {
        if let unsaved = unsaved.now {
            return try await save(unsaved.credentials, for: unsaved.rows, under: unsaved.lock, until: end)
        }
        stage("the lock of the refresh")
        let lock = try await HeldLock.acquire(
            partition + Self.lockSuffix, in: locks, for: "refreshing credentials", label: options.label, until: end,
            waiting: { self.stage("the lock of the refresh, which is held by \($0)") })
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
        if old.isFresh(at: options.now(), margin: options.margin) { return old }
        guard try standing().state.hasCredentials else { return nil }
        stage("the identity provider")
        let answer = await cancelled(at: end) { () -> Result<Credentials, IdentityError> in
            do throws(IdentityError) { return .success(try await provider.refresh(old, deadline: end)) } catch {
                return .failure(error)
            }
        }
        switch answer ?? .failure(IdentityError(.unreachable, "the identity provider has given no answer")) {
        case .success(let new):
            isKept = true
            return try await save(
                new.completed(by: old), for: found.rows, under: lock,
                until: .now + options.keyTimeout)
        case .failure(let error):
            guard error.event != .unreachable else { throw LarderError(error) }
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
        _ credentials: Credentials, for rows: [SealedCredential], under lock: HeldLock,
        until end: ContinuousClock.Instant
    ) async throws(LarderError) -> Credentials? {
        stage("the new credentials to be stored")
        unsaved.keep((credentials, rows, lock))
        let isStored: Bool
        do throws(LarderError) {
            isStored = try await vault.store(
                credentials, expecting: rows, until: end, session: change(by: .refreshed))
        } catch {
            // The partition was forgotten, or its environment's users are signed in by another pool: never again.
            if let cause = error.cause as? OperationsError, [.unknownPartition, .parked].contains(cause.code) {
                unsaved.keep(nil)
                lock.release()
            }
            throw error
        }
        unsaved.keep(nil)
        lock.release()
        // A user has signed in or out meanwhile: the new credentials belong to no session any more.
        return isStored ? credentials : nil
    }

    private func stage(_ stage: String) { refreshing.withLock { $0.stage = stage } }
}
