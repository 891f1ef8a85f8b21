import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderHTTP

struct Run: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Carries out what waits: sends queued mutations, and transfers files where a storage is named.",
        discussion: """
            Prints a line for each mutation and transfer that ends, until it is interrupted or, with --until-idle, \
            nothing is left that could be carried out: what was set aside stays, and what waits for that. Where \
            another process carries the work out, this one stands by. What it waits for is said on standard error. With \
            --until-idle it gives up where nothing was carried out for --give-up-after seconds, and names what remains: \
            the status is 1 then, as it is where something was set aside, or failed, or the run was interrupted before \
            its end. The store's program knows its own resolvers, \
            checks and updaters, and this command knows none: it sets a mutation aside that needs one. With --max-bytes \
            or --max-age it looks once a minute whether the cache keeps within them, and says why where it cannot.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var server: ServerOptions
    @OptionGroup var time: TimeoutOptions
    @OptionGroup var objects: ObjectOptions
    @OptionGroup var bounds: BoundOptions
    @OptionGroup var device: DeviceOptions
    @Flag(
        name: .customLong("until-idle"),
        help: "End when nothing is left to carry out; status 1 if something was set aside, failed or remains.")
    var untilIdle = false
    @Option(
        name: .customLong("give-up-after"),
        help: ArgumentHelp(
            "With --until-idle: end when nothing was carried out for so long. Default: \(Self.defaultPatience).",
            valueName: "seconds"))
    var giveUpAfter: Double?
    @Option(
        name: .customLong("idempotency-header"),
        help: ArgumentHelp(
            "The header by which the server tells a repeat. Without it, a mutation whose answer is lost is set aside.",
            valueName: "name"))
    var idempotencyHeader: String?

    private static let defaultPatience = 60

    func validate() throws {
        guard giveUpAfter == nil || untilIdle else { throw ValidationError("--give-up-after goes with --until-idle.") }
        guard giveUpAfter.map({ $0 > 0 && $0 <= 1e9 }) ?? true else {
            throw ValidationError("--give-up-after takes a number of seconds above 0.")
        }
    }

    /// For how long nothing may be carried out; nil: as long as it takes.
    private var patience: Duration? { untilIdle ? .seconds(giveUpAfter ?? Double(Self.defaultPatience)) : nil }

    func perform(_ output: Output) async throws {
        let (folder, schema, storage) = (try store.folder(partition), try schema.texts(), try objects.access())
        let bounds = try bounds.bounds()
        let idempotency = idempotencyHeader.map { Idempotency.header(name: $0) }
        let news = try await server.withTransport(idempotency: idempotency) { transport in
            try await folder.withPartition(
                .writing, schema: schema, transport: transport, on: device, output
            ) { partition in
                if let storage {
                    try await storage.withTransport {
                        try await carryOut(partition, [storage.name: $0], bounds, output)
                    }
                } else {
                    try await carryOut(partition, [:], bounds, output)
                }
            }
        }
        try output.result(news.json, text: "")
        output.note(news.summary)
        try await tellOthers(folder, output)
        guard untilIdle else { return }
        if !news.isIdle { throw news.remaining(givingUpAfter: patience) }
        if news.hasFailures {
            throw Ended(
                .failure,
                hint: "'larder mutations' and 'larder transfers' tell why; 'mutations replay --all --write' and "
                    + "'transfers retry --all --write' try again")
        }
    }

    /// Says where else something waits: a run is of one partition.
    private func tellOthers(_ folder: StoreFolder, _ output: Output) async throws {
        let others =
            try await folder.countOthers { database, name in
                let counts = try database.mutations.counts(in: name)
                return counts.filter { $0.key != .deadLetter }.values.reduce(0, +)
            } ?? [:]
        for (name, count) in others.sorted(by: { $0.key < $1.key }) where count > 0 {
            output.note("in partition \(name), which is not the current one, wait \(count.counted("mutation"))")
        }
    }

    /// Works until it is idle or interrupted.
    private func carryOut(
        _ partition: Partition, _ storages: [String?: any ObjectTransport], _ bounds: CacheUpkeep, _ output: Output
    ) async throws -> RunNews {
        var options = MutationRunner.Options()
        options.timeout = try time.value()
        let mutations = MutationRunner(partition, options: options)
        let transfers = storages.first.map { name, storage in
            guard let name else { return TransferRunner(partition, storage: storage) }
            return TransferRunner(partition, storage: nil, named: [name: storage])
        }
        let tellOfBounds = { @Sendable (error: any Error) in
            output.note("the cache does not keep within its bounds: \(error)")
        }
        // With --until-idle there may be no time for it later.
        if bounds.isBounded { await partition.putInOrder(bounds, failed: tellOfBounds) }
        var news = try await withThrowingTaskGroup(of: RunNews?.self) { group in
            group.addTask {
                try await mutations.run()
                return nil
            }
            if let transfers {
                group.addTask {
                    try await transfers.run()
                    return nil
                }
            }
            if bounds.isBounded {
                group.addTask {
                    await partition.keepInOrder(bounds, isInOrder: true, failed: tellOfBounds)
                    return nil
                }
            }
            group.addTask { [untilIdle, patience] in
                try await Self.follow(
                    partition, mutations, transfers, Set(storages.keys), endsWhenIdle: untilIdle, patience, output)
            }
            var last: RunNews?
            // The runners end when they are cancelled, and wait for what is in flight.
            for try await news in group {
                guard let news else { continue }
                last = news
                group.cancelAll()
            }
            return last
        }
        try news?.tell(partition, output)
        // What was in flight may have been the last.
        if news?.isEmpty == true { news?.isIdle = true }
        return try news ?? RunNews(partition)
    }

    /// Tells what ends and what it waits for, until that is all, nothing has happened for too long, or the user
    /// interrupts it.
    private static func follow(
        _ partition: Partition, _ mutations: MutationRunner, _ transfers: TransferRunner?, _ storages: Set<String?>,
        endsWhenIdle: Bool, _ patience: Duration?, _ output: Output
    ) async throws -> RunNews {
        let interruption = Interruption()
        var news = try RunNews(partition)
        while true {
            let (start, count) = (SuspendingClock.now, partition.changeCount)
            try news.tell(partition, output)
            for wait in news.waits() { output.note(wait) }
            if let change = news.change(mutations.state, transfers?.state) { output.note(change) }
            if endsWhenIdle {
                news.isIdle = try !partition.hasWork(storages: storages)
                if news.isIdle {
                    if let left = news.leftText { output.note(left) }
                    return news
                }
                if mutations.state == .waitingForSignIn {
                    throw TransportError(.notSignedIn, "The server does not know the user, and what waits was not sent")
                }
                if transfers?.state == .waitingForSignIn {
                    throw ObjectError(
                        .invalidCredentials, "The storage does not take the keys, and what waits was not moved")
                }
            }
            if let patience, news.lastProgress.duration(to: .now) > patience { return news }
            // Of a long queue a look takes long, and must not be all that this machine does.
            let pause = max(.milliseconds(100), start.duration(to: .now) * 9)
            if await interruption.wait(for: pause) { return news }
            guard !endsWhenIdle else { continue }
            if await interruption.wait(for: { await partition.change(past: count) }) { return news }
        }
    }
}
