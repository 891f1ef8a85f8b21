import LarderOperations

extension Session {
    /// Takes the tokens over that an earlier version of the program, with another library, had left: once, before
    /// anything else has happened in the session.
    ///
    /// ```swift
    /// if try app.session.standing().since == nil, let old = LegacyTokens.inKeychain(of: environment) {
    ///     _ = try await app.session.adopt(old, of: environment)
    /// }
    /// ```
    ///
    /// Tokens of another pool or client are put into quarantine, with the reason `otherEnvironment`: the library does
    /// not use them or wait for them, and the session is signed out.
    ///
    /// The same holds for tokens of another user than the partition's. A guest's partition takes any user's: adopt
    /// before a user of this program has ever signed in.
    ///
    /// - Parameters:
    ///   - legacy: The tokens, as the other library left them.
    ///   - user: The id by which the program names the tokens' user; nil for the subject of the tokens.
    ///   - environment: The partition's.
    ///   - time: How long the key provider may be waited for.
    /// - Throws: As `signIn`; `.noUserPool` where the environment has none.
    public func adopt(
        _ legacy: LegacyTokens, as user: String? = nil, of environment: BackendEnvironment,
        within time: Duration? = nil
    ) async throws(LarderError) -> LegacyAdoption {
        let deadline = SuspendingClock.now + (time ?? options.keyTimeout)
        guard let pool = environment.userPool else {
            throw LarderError(.noUserPool, "The environment has no user pool, whose tokens are to be taken over")
        }
        guard try standing().since == nil else { return .late }
        let owner: String?
        do throws(OperationsError) { owner = try database.environments.partition(partition)?.user } catch {
            throw LarderError(error)
        }
        let fits = legacy.belong(to: pool) && (owner == nil || owner == user ?? legacy.tokens.subject)
        let event = fits ? SessionEvent.signedIn : .signedOut
        let change = change(by: event, reason: fits ? nil : "the earlier tokens are another pool's or user's")
        let once: SessionChange = { stored in
            // Another process may have been quicker.
            stored == nil ? change(stored) : nil
        }
        let now = options.now()
        while true {
            let outcome = try await vault.put(
                Credentials(userPool: legacy.tokens), until: deadline, session: once
            ) { (new) async throws(OperationsError) in
                if fits { return try await database.credentials.replace(by: new) }
                return try await database.credentials.quarantine(
                    new, as: QuarantineReason.otherEnvironment.rawValue, now: now)
            }
            switch outcome {
            case .stored:
                noticeSignIn()
                return fits ? .adopted : .quarantined
            case .refused, .changed: return .late
            case .otherKey: try vault.requireTime(until: deadline)
            }
        }
    }

    /// Destroys what is in quarantine: credentials that could not be opened or were another environment's. `status`
    /// lists them.
    ///
    /// - Returns: How many there were.
    /// - Throws: `.parked`, `operations.…`.
    @discardableResult
    public func emptyQuarantine() async throws(LarderError) -> Int {
        _ = try standing()
        do throws(OperationsError) {
            return try await database.credentials.emptyQuarantine(of: partition)
        } catch { throw LarderError(error) }
    }
}
