import LarderOperations

extension Store {
    /// Signs a user in to the current environment, in one step: the user's partition, which is made if need be, becomes
    /// the current one, and has the credentials.
    ///
    /// Who signs in is known only afterwards, and a partition belongs to a user. One transaction switches and stores
    /// the credentials: a process that is killed at any moment leaves the partition of before with its session, or the
    /// user's partition with the credentials.
    ///
    /// ```swift
    /// let change = try await store.signIn(credentials, pending: .carry, server: http)
    /// let app = change.partition
    /// ```
    ///
    /// - Parameters:
    ///   - credentials: What the sign-in has returned.
    ///   - user: The user's id, which the environment's identity provider never gives to another user; nil for the
    ///     subject of the user pool's id token.
    ///   - work: What becomes of the mutations and transfers of the partition that is left: a guest's, above all.
    ///   - time: How long the key provider may be waited for; nil for the session's `keyTimeout`.
    ///   - server: How the environment's server is reached.
    /// - Throws: `.noEnvironment`; `.sessionState` for no credentials at all, and where the user is not said and the
    ///   credentials do not say it; `keys.…` where no key can be had to seal them with; `.timedOut`; otherwise as
    ///   `switch(toUser:pending:server:)`. Nothing was changed then, unless the code is `records.…`.
    public func signIn(
        _ credentials: Credentials, as user: String? = nil, pending work: PendingWork,
        within time: Duration? = nil, server: (any GraphQLTransport)? = nil
    ) async throws(LarderError) -> EnvironmentSwitch {
        let deadline = SuspendingClock.now + (time ?? options.session.keyTimeout)
        guard !credentials.isEmpty else { throw LarderError(.sessionState, "There is nothing in the credentials") }
        guard let id = user ?? credentials.userPool?.subject else {
            throw LarderError(.sessionState, "The credentials do not say whose they are; name the user")
        }
        let user = try Destination.User(.user(id))
        guard let name = try current()?.environment else {
            throw LarderError(.noEnvironment, "No environment is chosen; open the store with one, or switch to one")
        }
        let reached = options.reachedInSwitch
        reached(.asked)
        let change = SessionStanding.change(by: .signedIn, now: options.now())
        while true {
            let destination = Destination(environment: .stored(name), user: user)
            let (environments, vault) = try vault(of: destination, in: name)
            var report: SwitchReport?
            _ = try await vault.put(credentials, until: deadline, session: change) {
                (new) async throws(OperationsError) in
                let made = try await environments.enter(
                    destination, leaving: .init(work), signingIn: new, now: options.now(),
                    beforeCommit: { reached(.written) })
                report = made.report
                return made.outcome
            }
            if let report {
                reached(.committed)
                let entered = try entered(report, server)
                // Where it was the current one before, its callers may wait for a sign-in.
                try? entered.partition.session.noticeSignIn()
                return entered
            }
            // Another process has made the partition, or its key, meanwhile.
            try vault.requireTime(until: deadline)
        }
    }

    /// What seals credentials for a destination, which need not be there yet.
    private func vault(
        of destination: Destination, in environment: String
    ) throws(LarderError) -> (EnvironmentTable, CredentialVault) {
        let database = try operationsStore.database()
        let (environments, partition, stored): (EnvironmentTable, String, StoredEnvironment?)
        do {
            environments = try database.environments(of: folder, options)
            partition = try environments.partition(of: environment, destination.user)?.name ?? destination.newName
            stored = try environments.find(environment)
        } catch { throw LarderError(translating: error) }
        guard let stored else {
            throw LarderError(.noEnvironment, "The environment \(environment) was removed; switch to another")
        }
        let ring = KeyRing(
            options.keys(besides: folder), partition: partition, executor: OutsideExecutor(),
            keyTimeout: options.session.keyTimeout)
        return (
            environments,
            CredentialVault(
                database: database, partition: partition, identity: stored.fingerprints.identity, ring: ring,
                locks: folder.appending(path: "locks"), label: options.label, now: options.now, options.files)
        )
    }
}
