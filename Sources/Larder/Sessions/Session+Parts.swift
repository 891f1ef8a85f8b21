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
        let deadline = ContinuousClock.now + (time ?? options.refreshTimeout)
        let reading = try await credentials(with: .userPool, until: deadline) { credentials in
            guard let refused, let tokens = credentials.userPool else { return false }
            return tokens.accessToken == refused.accessToken || tokens.idToken == refused.idToken
        }
        guard let tokens = reading.credentials?.userPool else { throw .notInUserPool }
        return tokens
    }

    /// The cloud's credentials, good now, of a user or a guest: the stored ones, or new ones. For new ones a user's
    /// tokens are refreshed first, where they have ended.
    ///
    /// - Parameters:
    ///   - time: How long the providers may be waited for.
    ///   - refused: As with `userPoolTokens`.
    /// - Throws: `.notSignedIn` at once, where there is neither a user nor a guest; `identity.federatedRefused` where
    ///   the identity pool has refused them; `.noIdentityPool`; otherwise as `credentials(within:)`.
    public func cloudCredentials(
        within time: Duration? = nil, refused: Credentials.CloudCredentials? = nil
    ) async throws(LarderError) -> Credentials.CloudCredentials {
        let deadline = ContinuousClock.now + (time ?? options.refreshTimeout)
        let reading = try await credentials(with: .cloud, until: deadline) { credentials in
            guard let refused, let cloud = credentials.cloud else { return false }
            return (cloud.accessKeyID, cloud.sessionToken) == (refused.accessKeyID, refused.sessionToken)
        }
        guard let cloud = reading.credentials?.cloud else { throw .noIdentityPool }
        return cloud
    }

    /// Who the user or guest is to the identity pool. It stays the same for as long as the session does: it is stored,
    /// and asked for only where there is none yet.
    ///
    /// - Throws: As `cloudCredentials`; `identity.unusable` where the identity provider gives none.
    public func identityID(within time: Duration? = nil) async throws(LarderError) -> String {
        let deadline = ContinuousClock.now + (time ?? options.refreshTimeout)
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

    /// A reading of credentials of which one part is good. What it holds while it waits is next to nothing, since many
    /// callers wait for the same refresh, and let go of it at the same time.
    private func credentials(
        with part: Credentials.Part, until deadline: ContinuousClock.Instant,
        unless isRefused: @escaping @Sendable (Credentials) -> Bool
    ) async throws(LarderError) -> CredentialReading {
        func isGood(_ reading: CredentialReading) -> Bool {
            guard case .present(let credentials) = reading else { return false }
            return credentials.has(part, freshAt: options.now(), margin: options.margin) && !isRefused(credentials)
        }
        // A refresh that was under way may have been another's, who had not heard of the refusal.
        var refreshesLeft = 2
        while true {
            let (state, reading) = try await stored(part, until: deadline)
            if isGood(reading) { return reading }
            if try needsTokens(for: part, reading), refreshesLeft == 2 {
                _ = try await userPoolTokens(within: .until(deadline))
            }
            do throws(LarderError) {
                guard refreshesLeft > 0 else {
                    throw LarderError(
                        IdentityError(.unusable, "The identity provider gave credentials that are of no use"))
                }
                refreshesLeft -= 1
                if let new = try await refresh(part, until: deadline, unless: isRefused), isGood(new) { return new }
            } catch {
                guard let credentials = reading.credentials, !isRefused(credentials) else { throw error }
                _ = try stillGood(credentials, [part], state, despite: error)
                return reading
            }
            try requireTime(until: deadline)
        }
    }

    /// The credentials that are stored, good or not, and the state in which they were read.
    private func stored(
        _ part: Credentials.Part, until deadline: ContinuousClock.Instant
    ) async throws(LarderError) -> (state: SessionState, reading: CredentialReading) {
        while true {
            let (standing, unchanged) = try look()
            guard standing.state.allows(part) else { throw unavailable(part, standing) }
            let found = if let unchanged { unchanged } else { try await read(until: deadline) }
            switch found.reading {
            case .present: return (standing.state, found.reading)
            case .absent:
                try await record(.credentialsLost, reason: "there are no credentials any more", because: found)
            case .unavailable(let error): throw LarderError(error)
            }
            try requireTime(until: deadline)
        }
    }

    private func requireTime(until deadline: ContinuousClock.Instant) throws(LarderError) {
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
    private func needsTokens(for part: Credentials.Part, _ reading: CredentialReading) throws(LarderError) -> Bool {
        guard let credentials = reading.credentials else { return false }
        if !credentials.present.contains(part) {
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
