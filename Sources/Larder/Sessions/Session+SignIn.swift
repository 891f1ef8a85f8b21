import LarderOperations

extension Session {
    /// Who credentials are for.
    public enum Holder: Sendable, Hashable {
        /// A user who has signed in.
        case user
        /// A user who has not, where the backend gives guests credentials.
        case guest
    }

    /// What signing out has left.
    public struct SignOut: Sendable {
        /// Mutations of the partition that the server may not have; they stay, and are sent when the user has signed in
        /// again.
        public var unsentMutations: Int
        /// Mutations among them that were set aside.
        public var deadLetters: Int
        /// Uploads of the partition that the storage may not have, failed ones included; they stay as well.
        public var unsentUploads: Int
        /// Whether the server was told, or has nothing to revoke: a guest's credentials, or no refresh token. Nil where
        /// there was no server to tell, or no credentials to tell it with.
        public var isServerTold: Bool?
        /// Why it was not.
        public var failure: IdentityError?
    }

    /// Stores a user's credentials in the place of whatever there is. Callers that wait for a sign-in go on.
    ///
    /// The partition stays as it is, with its cache and its queue: these are for the user to whom it belongs. Where users
    /// take turns, sign them in by `Store.signIn`, which gives each a partition.
    ///
    /// - Parameters:
    ///   - credentials: What the sign-in has returned.
    ///   - time: How long the key provider may be waited for; nil for the options' `keyTimeout`.
    /// - Throws: `keys.…` where no key can be had to seal them with; `.timedOut`; `.parked`; `operations.…`.
    public func signIn(_ credentials: Credentials, within time: Duration? = nil) async throws(LarderError) {
        try await accept(credentials, as: .user, within: time)
    }

    /// Stores credentials in the place of whatever there is.
    ///
    /// - Parameters:
    ///   - credentials: What the sign-in has returned.
    ///   - holder: Whose credentials they are: a user's, or a guest's.
    ///   - time: As of `signIn`.
    /// - Throws: `.sessionState` for a guest's while a user is signed in, and for none at all; and as `signIn`.
    public func accept(
        _ credentials: Credentials, as holder: Holder = .user, within time: Duration? = nil
    ) async throws(LarderError) {
        let deadline = SuspendingClock.now + (time ?? options.keyTimeout)
        let event = holder == .user ? SessionEvent.signedIn : .becameGuest
        guard !credentials.isEmpty else { throw LarderError(.sessionState, "There is nothing in the credentials") }
        try require(event)
        _ = try await vault.store(credentials, until: deadline, session: change(by: event))
        noticeSignIn()
    }

    private func require(_ event: SessionEvent) throws(LarderError) {
        let standing = try standing()
        guard standing.state.after(event) != nil else {
            throw LarderError(.sessionState, "The session is \(standing); sign out before a guest takes over")
        }
    }

    /// Wakes the callers that wait for a sign-in.
    func noticeSignIn() {
        countSignIn()
        noticeChanges()
        changeSignal.notify()
    }

    /// Asks the identity provider for a guest's credentials and stores them.
    ///
    /// - Parameter time: How long that may take; nil for the options' `refreshTimeout`.
    /// - Returns: False where it has none for guests.
    /// - Throws: `identity.…`, `.noIdentityProvider`, and as `accept`.
    public func continueAsGuest(within time: Duration? = nil) async throws(LarderError) -> Bool {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        guard let provider else {
            throw LarderError(.noIdentityProvider, "There is no identity provider to ask for a guest's credentials")
        }
        try require(.becameGuest)
        let task = SharedTask(on: executor, until: deadline) { () -> Result<Credentials?, IdentityError> in
            do throws(IdentityError) {
                return .success(try await provider.guestCredentials(within: .until(deadline)))
            } catch { return .failure(error) }
        }
        switch await task.value(until: deadline) {
        case .success(nil): return false
        case .success(let credentials?):
            try await accept(credentials, as: .guest, within: .until(deadline))
            return true
        case .failure(let error): throw LarderError(error)
        case nil:
            if Task.isCancelled { throw .cancelled }
            throw LarderError(.timedOut, "The caller waited for a guest's credentials from the identity provider")
        }
    }

    /// How long a key provider may delay a sign-out.
    private static let signOutPatience = Duration.seconds(1)

    /// Forgets the credentials, here at once and for good, and tells the server if it can be reached in time.
    /// Queued work stays, and the answer says how much that is.
    ///
    /// - Parameter time: How long the server may be waited for; nil for the options' `refreshTimeout`.
    /// - Throws: `.parked`, `operations.…`: nothing was changed then.
    @discardableResult
    public func signOut(within time: Duration? = nil) async throws(LarderError) -> SignOut {
        let deadline = SuspendingClock.now + (time ?? options.refreshTimeout)
        _ = try standing()
        // The server is told with these. A user whose credentials cannot be read now is signed out nevertheless.
        var old: Credentials?
        let end = min(deadline, .now + Self.signOutPatience)
        if provider != nil, case .present(let credentials) = try? await read(until: end).reading {
            old = credentials
        }
        let (counts, uploads) = try translating { () throws(OperationsError) in
            (try database.mutations.counts(in: partition), try database.transfers.unsentUploads(in: partition))
        }
        var answer = SignOut(
            unsentMutations: [.pending, .inFlight, .deadLetter].reduce(0) { $0 + (counts[$1] ?? 0) },
            deadLetters: counts[.deadLetter] ?? 0, unsentUploads: uploads)
        do throws(OperationsError) {
            try await database.credentials.forget(in: partition, session: change(by: .signedOut))
        } catch { throw LarderError(error) }
        vault.forget()
        countSignIn()
        noticeChanges()
        // The deleted rows are in the log still, sealed as they were.
        _ = try? await database.emptyLog(until: min(deadline, .now + .milliseconds(50)))
        guard let provider, let old else { return answer }
        let task = SharedTask(on: executor, until: deadline) { () -> IdentityError? in
            do throws(IdentityError) {
                try await provider.signOut(old, within: .until(deadline))
                return nil
            } catch { return error }
        }
        let failure =
            await task.value(until: deadline)
            ?? IdentityError(.unreachable, "The identity provider had not answered by the deadline")
        answer.failure = failure
        answer.isServerTold = failure == nil
        return answer
    }
}
