import Foundation
import LarderOperations

extension Store {
    /// The partition of an environment and a user, which is the current one from now on.
    ///
    /// Uses no network and no credentials, and waits for other processes no longer than the store's options say. It
    /// does not look at what another environment has left behind.
    ///
    /// ```swift
    /// let app = try store.partition(of: staging, leaving: .park, server: http)
    /// ```
    ///
    /// - Parameters:
    ///   - environment: The backend, with its name.
    ///   - user: The user who works with it; nil for the last one, a guest at first.
    ///   - work: What becomes of the mutations of the partition that is the current one, if it is another; with nil it
    ///     is not left, which is an error.
    ///   - server: How its server is reached.
    /// - Throws: `operations.otherPartition` where another is the current one and is not to be left;
    ///   `operations.environmentChanged` where the name is another backend's; `operations.occupied`; `.environment`
    ///   where the definition cannot be used; otherwise as `partition(server:)`.
    public func partition(
        of environment: BackendEnvironment, user: PartitionUser? = nil, leaving work: PendingWork? = nil,
        server: (any GraphQLTransport)? = nil
    ) throws(LarderError) -> Partition {
        let destination = try destination(environment, user)
        // Nearly always nothing has to be written.
        let (environments, standing): (EnvironmentTable, StoredPartition?)
        do {
            environments = try operationsStore.database().environments(of: folder, options)
            standing = try environments.standing(destination)
        } catch { throw LarderError(translating: error) }
        if let standing { return try current(standing, server) }
        let report: SwitchReport
        do {
            report = try environments.enterNow(
                destination, leaving: work.map(LarderOperations.PendingWork.init), now: options.now())
        } catch { throw LarderError(error) }
        return try entered(report, server).partition
    }

    /// Makes the partition of another environment, or of another user, the current one.
    ///
    /// One transaction: whatever happens, one of the two is the current one, whole. The partition that is left keeps
    /// its cache, its mutations, its watchers and its session. In this and other processes its handles' calls throw
    /// `.parked` and its streams end; what is answered late lands there and nowhere else.
    ///
    /// - Parameters:
    ///   - environment: The backend, with its name.
    ///   - user: The user who works with it; nil for the last one, a guest at first.
    ///   - work: What becomes of the mutations of the one that is left.
    ///   - server: How its server is reached.
    /// - Throws: As `partition(of:user:leaving:server:)`; then nothing was switched, unless the code is
    ///   `records.…`: then the cache could not be opened afterwards, and the error of asking again tells why.
    public func `switch`(
        to environment: BackendEnvironment, user: PartitionUser? = nil, pending work: PendingWork = .park,
        server: (any GraphQLTransport)? = nil
    ) async throws(LarderError) -> EnvironmentSwitch {
        try await enter(try destination(environment, user), work, server)
    }

    /// Makes the partition of another user of the current environment the current one, as when a user signs in.
    ///
    /// - Throws: `.noEnvironment` where no environment is chosen; otherwise as `switch(to:user:pending:server:)`.
    public func `switch`(
        toUser user: PartitionUser, pending work: PendingWork, server: (any GraphQLTransport)? = nil
    ) async throws(LarderError) -> EnvironmentSwitch {
        guard let name = try current()?.environment else {
            throw LarderError(.noEnvironment, "No environment is chosen; open the store with one, or switch to one")
        }
        return try await enter(destination(.stored(name), user), work, server)
    }

    /// Which partition is the current one; nil where no environment is chosen.
    public func current() throws(LarderError) -> PartitionIdentity? {
        do {
            return try operationsStore.database(making: false)?.environments.current()?.partition.map(
                PartitionIdentity.init)
        } catch { throw LarderError(translating: error) }
    }

    /// All the partitions that the store has.
    public func partitionIdentities() throws(LarderError) -> [PartitionIdentity] {
        do {
            return try operationsStore.database(making: false)?.environments.partitions().map(PartitionIdentity.init)
                ?? []
        } catch { throw LarderError(translating: error) }
    }

    /// The current partition now, if one was chosen, and whenever this process or another has switched; nil where there
    /// is to be none. A slow reader gets the newest. Ends when the store is closed.
    public func currentPartitions() throws(LarderError) -> AsyncStream<PartitionIdentity?> {
        try partitions.lookForCurrent()
        partitions.followOthers()
        return partitions.currents()
    }

    /// What a switch came to, once the database has made it.
    func entered(
        _ report: SwitchReport, _ transport: (any GraphQLTransport)?
    ) throws(LarderError) -> EnvironmentSwitch {
        guard let entered = report.to else { throw LarderError(.noEnvironment, "No environment was entered") }
        let partition = try current(entered.partition, transport)
        return EnvironmentSwitch(
            partition: partition, left: report.isSwitch ? report.from.map(EnvironmentSwitch.Side.init) : nil,
            entered: .init(entered), carried: report.carried, discarded: report.discarded,
            carriedTransfers: report.carriedTransfers, discardedTransfers: report.discardedTransfers)
    }

    private func enter(
        _ destination: Destination, _ work: PendingWork, _ transport: (any GraphQLTransport)?
    ) async throws(LarderError) -> EnvironmentSwitch {
        let report: SwitchReport
        let reached = options.reachedInSwitch
        reached(.asked)
        do {
            report = try await operationsStore.database().environments(of: folder, options).enter(
                destination, leaving: .init(work), now: options.now(), beforeCommit: { reached(.written) })
        } catch { throw LarderError(translating: error) }
        reached(.committed)
        return try entered(report, transport)
    }

    /// Opens the partition that the database says is the current one, and parks the others.
    func current(
        _ stored: StoredPartition, _ transport: (any GraphQLTransport)?
    ) throws(LarderError) -> Partition {
        try partitions.lookForCurrent()
        options.reachedInSwitch(.parked)
        let partition = try partition(unlessLeft: stored.name, transport)
        options.reachedInSwitch(.opened)
        return partition
    }

    /// Opens a partition that was the current one, and parks it if another has become the current one meanwhile: no
    /// other caller could park it before it was open.
    func partition(
        unlessLeft name: String, _ server: (any GraphQLTransport)?
    ) throws(LarderError) -> Partition {
        let partition = try partition(named: name, server)
        try partitions.lookForCurrent()
        return partition
    }

    private func destination(
        _ environment: BackendEnvironment, _ user: PartitionUser?
    ) throws(LarderError) -> Destination {
        try destination(.draft(environment.draft), user)
    }

    private func destination(
        _ environment: Destination.Environment, _ user: PartitionUser?
    ) throws(LarderError) -> Destination {
        Destination(environment: environment, user: try Destination.User(user))
    }
}

extension Destination.User {
    init(_ user: PartitionUser?) throws(LarderError) {
        switch user {
        case nil: self = .last
        case .guest: self = .guest
        case .user(""): throw LarderError(.environment, "A user's id is empty; a guest is said by .guest")
        case .user(let id): self = .user(id)
        }
    }
}
