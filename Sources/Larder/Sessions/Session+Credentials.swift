import LarderOperations

extension Session {
    /// The stored credentials, as they are. The call refreshes nothing, and waits only for the key provider.
    ///
    /// Stored credentials that cannot be opened, because they are another environment's or damaged, are put into
    /// quarantine by this, and absent from then on; `status` lists them.
    ///
    /// - Parameter time: How long the key provider may be waited for; nil for the options' `keyTimeout`.
    /// - Throws: `.parked`, `.cancelled`, `operations.…`.
    package func storedCredentials(within time: Duration? = nil) async throws(LarderError) -> CredentialReading {
        let deadline = SuspendingClock.now + (time ?? options.keyTimeout)
        _ = try standing()
        return try await read(until: deadline).reading
    }

    /// Credentials that are good now: the stored ones, or new ones for them. Where there are no new ones, for whatever
    /// reason, the call returns stored ones that end within the margin.
    ///
    /// While no user is signed in, the call waits for a sign-in: for that time, or until `releaseWaiters`. One
    /// refresh serves all waiting callers, in whatever process. It goes on when they have given up, and its result is
    /// stored before any caller gets it.
    ///
    /// - Parameter time: How long the call may wait in all; nil for the options' `refreshTimeout`.
    /// - Throws: `.notSignedIn`; `.waitReleased`; `.timedOut`, with what was waited for and who held it; `keys.…` where
    ///   the credentials are there and cannot be opened now; `identity.…` where there are no new ones for them;
    ///   `.cancelled`; `.parked`; `.noIdentityProvider`; `operations.…`.
    public func credentials(within time: Duration? = nil) async throws(LarderError) -> Credentials {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        let releases = releases
        var refreshed: Set<Credentials.Part> = []
        var first: Credentials?
        while true {
            let standing = try await waiting(until: deadline, since: releases) { $0.state.hasCredentials }
            let found = try await read(until: deadline)
            switch found.reading {
            case .present(let credentials):
                let now = options.now()
                // A part that is another by now was refreshed with the one that was asked for.
                let start = first ?? credentials
                first = start
                if credentials.userPool != start.userPool { refreshed.insert(.userPool) }
                if credentials.cloud != start.cloud { refreshed.insert(.cloud) }
                let ended = credentials.present.first {
                    !refreshed.contains($0) && !credentials.has($0, freshAt: now, margin: options.margin)
                }
                guard let ended else { return credentials }
                do throws(LarderError) {
                    if try await refresh(ended, until: deadline) != nil { refreshed.insert(ended) }
                } catch {
                    return try stillGood(credentials, credentials.present, standing.state, despite: error)
                }
            case .absent:
                try await record(.credentialsLost, reason: "there are no credentials any more", because: found)
            case .unavailable(let error): throw LarderError(error)
            }
            guard !Task.isCancelled else { throw .cancelled }
            guard .now < deadline else { throw .notSignedIn(try self.standing()) }
        }
    }

    /// Waits until a user is signed in; a guest is none.
    ///
    /// - Parameter time: How long; nil for the options' `refreshTimeout`.
    /// - Throws: `.notSignedIn`, `.waitReleased`, `.cancelled`, `.parked`, `operations.…`.
    public func signedIn(within time: Duration? = nil) async throws(LarderError) {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        _ = try await waiting(until: deadline, since: releases) { $0.state == .signedIn }
    }

    /// - Parameter releases: How often waits had been ended when the caller came.
    private func waiting(
        until deadline: SuspendingClock.Instant, since releases: Int, for isEnough: (SessionStanding) -> Bool
    ) async throws(LarderError) -> SessionStanding {
        while true {
            let count = changeSignal.count
            let standing = try standing()
            if isEnough(standing) { return standing }
            guard self.releases == releases else {
                throw LarderError(
                    .waitReleased, "The program has ended the wait for a sign-in; the session is \(standing)")
            }
            guard !Task.isCancelled else { throw .cancelled }
            guard .now < deadline else { throw .notSignedIn(standing) }
            // Users sign in in other processes as well, which do not notify this one.
            await changeSignal.wait(past: count, for: min(deadline - .now, Self.lookPause))
        }
    }

    private static let lookPause = Duration.milliseconds(200)

    func read(until deadline: SuspendingClock.Instant) async throws(LarderError) -> CredentialVault.Found {
        let lost = change(by: .credentialsLost, reason: "the credentials were put into quarantine")
        let found = try await vault.read(until: deadline, lost: lost)
        if !found.suspects.isEmpty {
            for suspect in found.suspects {
                options.logger.warning(
                    "a credential was put into quarantine",
                    metadata: [
                        "partition": "\(partition)", "kind": "\(suspect.credential.kind)",
                        "reason": "\(suspect.reason)",
                    ])
            }
            noticeChanges()
        }
        return found
    }

    func record(
        _ event: SessionEvent, reason: String, because found: CredentialVault.Found
    ) async throws(LarderError) {
        if database.options.isReadOnly {
            throw LarderError(.notSignedIn, "\(reason), and the store was opened for reading only")
        }
        do throws(OperationsError) {
            try await database.credentials.changeSession(
                of: partition, expecting: found.rows, change(by: event, reason: reason))
        } catch { throw LarderError(error) }
        noticeChanges()
    }
}
