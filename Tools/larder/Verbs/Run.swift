import ArgumentParser
import Larder
import LarderCommandLine
import LarderHTTP

struct Run: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Carries out what waits: sends queued mutations, and transfers files where a storage is named.",
        discussion: """
            Prints a line for each mutation and transfer that ends, until it is interrupted or, with --until-idle, \
            nothing is left that could be carried out: what was set aside stays, and what waits for that. Where \
            another process carries the work out, this one stands by. The store's program knows its own resolvers, \
            checks and updaters, and this command knows none: it sets a mutation aside that needs one.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var server: ServerOptions
    @OptionGroup var time: TimeoutOptions
    @OptionGroup var objects: ObjectOptions
    @Flag(
        name: .customLong("until-idle"),
        help: "End when nothing is left to carry out; status 1 if something was set aside or failed meanwhile.")
    var untilIdle = false
    @Option(
        name: .customLong("idempotency-header"),
        help: ArgumentHelp(
            "The header by which the server tells a repeat. Without it, a mutation whose answer is lost is set aside.",
            valueName: "name"))
    var idempotencyHeader: String?

    func perform(_ output: Output) async throws {
        let (folder, schema, storage) = (try store.folder(partition), try schema.texts(), try objects.access())
        let idempotency = idempotencyHeader.map { Idempotency.header(name: $0) }
        let news = try await server.withTransport(idempotency: idempotency) { transport in
            try await folder.withPartition(.writing, schema: schema, transport: transport, output) { partition in
                if let storage {
                    try await storage.withTransport {
                        try await carryOut(partition, [storage.name: $0], output)
                    }
                } else {
                    try await carryOut(partition, [:], output)
                }
            }
        }
        try output.result(news.json, text: "")
        output.note(news.summary)
        if untilIdle, news.hasFailures { throw Ended(.failure) }
    }

    /// Works until it is idle or interrupted.
    private func carryOut(
        _ partition: Partition, _ storages: [String?: any ObjectTransport], _ output: Output
    ) async throws -> RunNews {
        var options = MutationRunner.Options()
        options.timeout = try time.value()
        let mutations = MutationRunner(partition, options: options)
        let transfers = storages.first.map { name, storage in
            guard let name else { return TransferRunner(partition, storage: storage) }
            return TransferRunner(partition, storage: nil, named: [name: storage])
        }
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
            group.addTask { [untilIdle] in
                try await Self.follow(
                    partition, mutations, transfers, Set(storages.keys), endsWhenIdle: untilIdle, output)
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
        return try news ?? RunNews(partition)
    }

    /// Tells what ends, until that is all or the user interrupts it.
    private static func follow(
        _ partition: Partition, _ mutations: MutationRunner, _ transfers: TransferRunner?, _ storages: Set<String?>,
        endsWhenIdle: Bool, _ output: Output
    ) async throws -> RunNews {
        let interruption = Interruption()
        var news = try RunNews(partition)
        while true {
            let start = ContinuousClock.now
            try news.tell(partition, output)
            if let change = news.change(mutations.state, transfers?.state) { output.note(change) }
            if endsWhenIdle {
                let work = try partition.remainingWork(storages: storages)
                news.isIdle = !work.canGoOn
                if news.isIdle {
                    if work.waitingForFiles > 0 {
                        output.note(
                            "\(work.waitingForFiles) mutations wait for files, and no --object-region was named")
                    }
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
            // Of a long queue a look takes long, and must not be all that this machine does.
            let pause = max(.milliseconds(100), start.duration(to: .now) * 9)
            if await interruption.wait(for: pause) { return news }
        }
    }
}

/// What a run has carried out so far.
struct RunNews {
    /// What had not ended when it was looked at last.
    private var open: Set<MutationID> = []
    private var setAsideBefore: Set<MutationID> = []
    private var openTransfers: Set<TransferID> = []
    private var states: (RunnerState, RunnerState?)?
    private var applied = 0
    private var setAside: [MutationID] = []
    private var (transferred, failedTransfers) = (0, 0)
    /// Whether nothing was left to carry out.
    var isIdle = false

    init(_ partition: Partition) throws {
        let mutations = try partition.mutations()
        open = Set(mutations.filter { !$0.isEnded }.map(\.id))
        setAsideBefore = Set(mutations.filter(\.isEnded).map(\.id))
        openTransfers = Set(try partition.transfers.list().filter { !$0.isEnded }.map(\.id))
    }

    var hasFailures: Bool { !setAside.isEmpty || failedTransfers > 0 }

    /// Prints a line for each mutation and transfer that has ended since the last look; with `--json` none.
    mutating func tell(_ partition: Partition, _ output: Output) throws {
        for line in try look(partition) where !output.isJSON { try output.result(.null, text: Output.oneLine(line)) }
    }

    private mutating func look(_ partition: Partition) throws -> [String] {
        var lines: [String] = []
        let mutations = try partition.mutations()
        let present = Dictionary(mutations.map { ($0.id, $0) }) { $1 }
        for status in mutations where status.state == .deadLetter && !setAsideBefore.contains(status.id) {
            setAsideBefore.insert(status.id)
            open.remove(status.id)
            setAside.append(status.id)
            lines.append("set aside \(status.id)" + (status.failure.map { ": \($0.message)" } ?? ""))
        }
        for id in open where present[id] == nil {
            open.remove(id)
            guard let status = try partition.mutation(id).status() else { continue }
            if status.state == .applied { applied += 1 }
            lines.append("\(status.state.rawValue) \(id)")
        }
        for status in mutations where !status.isEnded {
            open.insert(status.id)
            setAsideBefore.remove(status.id)
        }
        let transfers = try partition.transfers.list()
        for status in transfers where status.isEnded && openTransfers.contains(status.id) {
            openTransfers.remove(status.id)
            if status.state == .done { transferred += 1 }
            if status.state == .failed { failedTransfers += 1 }
            lines.append(
                "\(status.state.rawValue) \(status.kind.rawValue) \(status.id)"
                    + (status.state == .failed ? status.failure.map { ": \($0.message)" } ?? "" : ""))
        }
        openTransfers.formUnion(transfers.filter { !$0.isEnded }.map(\.id))
        return lines
    }

    /// What is to be said of the runners, where that is new.
    mutating func change(_ mutations: RunnerState, _ transfers: RunnerState?) -> String? {
        if let states, states == (mutations, transfers) { return nil }
        states = (mutations, transfers)
        return switch (mutations, transfers) {
        case (.standingBy, _), (_, .standingBy): "another process carries out what waits here; standing by"
        case (.unusableServer, _): "what answers at the endpoint is no GraphQL server; asking again after pauses"
        case (.waitingForSignIn, _): "the server does not know the user"
        case (_, .waitingForSignIn): "the storage does not take the credentials"
        case (.offline, _), (_, .offline): "there is no network"
        default: nil
        }
    }

    var json: JSONText {
        .object([
            ("isIdle", .boolean(isIdle)), ("sent", .int(applied)),
            ("setAside", .strings(setAside.map(\.description))), ("transferred", .int(transferred)),
            ("failedTransfers", .int(failedTransfers)),
        ])
    }

    var summary: String {
        "\(applied) mutations applied, \(setAside.count) set aside; \(transferred) transfers done, "
            + "\(failedTransfers) failed"
    }
}
