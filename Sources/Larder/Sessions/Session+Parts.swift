import LarderOperations

// Tokens, cloud credentials and the identity id are three questions. Each has an age and errors of its own: an identity
// pool that is away keeps no token from a caller. None of them waits for a sign-in.

extension Session {
    /// The user pool's tokens, good now: the stored ones, or new ones for them. Where there are no new ones, for
    /// whatever reason, the call returns stored ones that end within the margin. It asks no identity pool.
    ///
    /// - Parameters:
    ///   - time: How long the providers may be waited for.
    ///   - refused: What a server has refused although it is good by its time: other tokens are wanted. They are
    ///     refreshed once for all callers, and not at all where they have been since.
    /// - Throws: `.notSignedIn` at once, where no user is signed in; `.notInUserPool`; `.noUserPool`; otherwise as
    ///   `credentials(within:)`.
    public func userPoolTokens(
        within time: Duration? = nil, refused: Credentials.UserPoolTokens? = nil
    ) async throws(LarderError) -> Credentials.UserPoolTokens {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        let credentials = try await credentials(
            with: .userPool, until: deadline, unless: refused.map(RefusedCredentials.tokens) ?? .nothing)
        guard let tokens = credentials.value.userPool else { throw .notInUserPool }
        return tokens
    }

    /// The cloud's credentials, good now, of a user or a guest: the stored ones, or new ones. For new ones a user's
    /// tokens are refreshed first, where they have ended; and once where the identity pool refuses them, since a server
    /// may know better than this clock.
    ///
    /// - Parameters:
    ///   - time: How long the providers may be waited for.
    ///   - refused: As with `userPoolTokens`.
    /// - Throws: `.notSignedIn` at once, where there is neither a user nor a guest; `identity.federatedRefused` where
    ///   the identity pool has refused them; `.noIdentityPool`; otherwise as `credentials(within:)`.
    public func cloudCredentials(
        within time: Duration? = nil, refused: Credentials.CloudCredentials? = nil
    ) async throws(LarderError) -> Credentials.CloudCredentials {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        let credentials = try await credentials(
            with: .cloud, until: deadline, unless: refused.map(RefusedCredentials.cloud) ?? .nothing)
        guard let cloud = credentials.value.cloud else { throw .noIdentityPool }
        return cloud
    }

    /// Who the user or guest is to the identity pool. It stays the same for as long as the session does: it is stored,
    /// and asked for only where there is none yet.
    ///
    /// - Throws: As `cloudCredentials`; `identity.unusable` where the identity provider gives none.
    public func identityID(within time: Duration? = nil) async throws(LarderError) -> String {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        let standing = try standing()
        if standing.state.hasCredentials || standing.state == .federatedTokensInvalid,
            case .present(let credentials) = try await read(until: deadline).reading,
            let id = credentials.cloud?.identityID
        {
            return id
        }
        guard let id = try await cloudCredentials(within: .until(deadline)).identityID else {
            throw LarderError(IdentityError(.unusable, "The identity provider gave credentials without an identity id"))
        }
        return id
    }

    /// Credentials of which one part is good. What a caller holds while it waits is next to nothing, since many wait for the
    /// same refresh, and let go of it at the same time.
    private func credentials(
        with part: Credentials.Part, until deadline: SuspendingClock.Instant,
        unless refused: RefusedCredentials
    ) async throws(LarderError) -> HeldCredentials {
        func isGood(_ credentials: HeldCredentials, margin: Duration) -> Bool {
            credentials.value.has(part, freshAt: options.now(), margin: margin)
                && !refused.has(credentials.value)
        }
        // A refresh that was under way may have been another's, who had not heard of the refusal.
        var refreshesLeft = 2
        var mayReplaceTokens = part == .cloud
        while true {
            let (state, stored) = try await stored(part, until: deadline)
            if isGood(stored, margin: options.margin) { return stored }
            if try needsTokens(for: part, stored.value), refreshesLeft == 2 {
                _ = try await userPoolTokens(within: .until(deadline))
            }
            let tokens = stored.value.userPool
            do throws(LarderError) {
                guard refreshesLeft > 0 else {
                    throw LarderError(
                        IdentityError(.unusable, "The identity provider gave credentials that are of no use"))
                }
                refreshesLeft -= 1
                let signIns = signIns
                let task = try sharedRefresh(part, unless: refused)
                let new = try refreshed(part, await task.value(until: deadline), since: signIns)
                // Where they live for less than the margin, others would as well.
                if let new, isGood(new, margin: .zero) { return new }
            } catch {
                // Tokens that are good by their time may have ended by the pool's: this clock was wrong, or they were
                // revoked.
                if mayReplaceTokens, let tokens, error.code.rawValue == IdentityError.Code.federatedRefused.rawValue {
                    mayReplaceTokens = false
                    refreshesLeft = 2
                    do throws(LarderError) {
                        _ = try await userPoolTokens(within: .until(deadline), refused: tokens)
                    } catch let failure {
                        // That there are no others says less, unless it says that the session has ended.
                        throw failure.code == .cancelled || (try? standing())?.state != state ? failure : error
                    }
                    continue
                }
                guard !refused.has(stored.value) else { throw error }
                _ = try stillGood(stored.value, [part], state, despite: error)
                return stored
            }
            try requireTime(until: deadline)
        }
    }

    /// The credentials that are stored, good or not, and the state in which they were read.
    private func stored(
        _ part: Credentials.Part, until deadline: SuspendingClock.Instant
    ) async throws(LarderError) -> (state: SessionState, credentials: HeldCredentials) {
        while true {
            if let known = try unchanged(), known.standing.state.allows(part) {
                return (known.standing.state, known.credentials)
            }
            let standing = try standing()
            guard standing.state.allows(part) else { throw unavailable(part, standing) }
            let found = try await read(until: deadline)
            switch found.reading {
            case .present(let credentials): return (standing.state, HeldCredentials(credentials))
            case .absent:
                try await record(.credentialsLost, reason: "there are no credentials any more", because: found)
            case .unavailable(let error): throw LarderError(error)
            }
            try requireTime(until: deadline)
        }
    }

    private func requireTime(until deadline: SuspendingClock.Instant) throws(LarderError) {
        guard !Task.isCancelled else { throw .cancelled }
        guard .now < deadline else { throw LarderError(.timedOut, "The caller waited for new credentials") }
    }

    /// The credentials, where these parts of them are still good: then they are better than none, whatever keeps new
    /// ones away.
    ///
    /// - Parameter state: The session's when the credentials were read.
    /// - Throws: The error, where the parts are not good, the caller has given up, or the session stands elsewhere now.
    func stillGood(
        _ credentials: Credentials, _ parts: [Credentials.Part], _ state: SessionState,
        despite error: LarderError
    ) throws(LarderError) -> Credentials {
        guard error.code != .cancelled, error.code != .parked,
            parts.allSatisfy({ credentials.has($0, freshAt: options.now(), margin: .zero) }),
            (try? standing())?.state ?? state == state
        else { throw error }
        return credentials
    }

    /// Why a part cannot be had in a state.
    private func unavailable(_ part: Credentials.Part, _ standing: SessionStanding) -> LarderError {
        guard part == .cloud, standing.state == .federatedTokensInvalid else { return .notSignedInNow(standing) }
        return LarderError(
            IdentityError(.federatedRefused, "The identity pool has refused: the session is \(standing); sign in again")
        )
    }

    /// Whether a part is had for tokens, which have to be good then.
    ///
    /// - Throws: Where nothing gives the part.
    private func needsTokens(for part: Credentials.Part, _ credentials: Credentials) throws(LarderError) -> Bool {
        if !credentials.contains(part) {
            let hasSource = provider?.parts.contains(part) ?? false
            switch part {
            case .userPool: throw provider != nil && !hasSource ? .noUserPool : .notInUserPool
            case .cloud: if !hasSource { throw .noIdentityPool }
            }
        }
        return part == .cloud && credentials.userPool != nil
    }
}

extension LarderError {
    fileprivate static var noUserPool: LarderError {
        LarderError(.noUserPool, "The environment has no user pool, whose tokens were asked for; configure one")
    }

    fileprivate static var noIdentityPool: LarderError {
        LarderError(
            .noIdentityPool, "The environment has no identity pool, whose credentials were asked for; configure one")
    }

    fileprivate static var notInUserPool: LarderError {
        LarderError(.notInUserPool, "A user is signed in, but not to the user pool; sign in there for its tokens")
    }
}
