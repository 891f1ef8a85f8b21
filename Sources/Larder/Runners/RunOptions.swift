/// What `Partition.run` carries out, and how.
public struct RunOptions: Sendable {
    /// How queued mutations are sent.
    public var mutations = Mutations()
    /// Where the objects of uploads and downloads are; nil for a program that transfers no files.
    public var storage: (any ObjectTransport)?
    /// Further storages, by the names that `ObjectLocation.storage` has.
    public var namedStorages: [String: any ObjectTransport] = [:]
    /// How files are transferred.
    public var transfers = Transfers()
    /// How the cache is kept in order.
    public var cache = CacheUpkeep()

    /// Mutations, and no transfers.
    public init() {}

    /// Mutations, and files from and to a storage.
    public init(storage: any ObjectTransport) { self.storage = storage }

    /// How mutations are sent.
    public struct Mutations: Sendable {
        /// How long one exchange with the server may take.
        public var timeout = Duration.seconds(30)
        /// How long to wait after a failure.
        package var backoff = Backoff()
        /// How many lanes are sent side by side.
        public var maximumLanes = 8
        /// After so many attempts of one run that ended in a fault of the server, in a conflict after which its
        /// resolver had it sent again, or in a question that its check or resolver did not answer, a mutation is set
        /// aside.
        public var maximumFaults = 20
        /// The query by whose answer the runner finds the server again after an answer that is no GraphQL response. A
        /// server that takes no query but its own, such as one of trusted documents, needs one of those here.
        public var probe = GraphQLOperation("{ __typename }")
        /// Headers of each request.
        public var headers: [GraphQLRequest.Header] = []
        /// Whether the network is there: as the system says.
        public var connectivity: any Connectivity = systemConnectivity()
        /// Functions that decide on conflicts, by the name that a mutation says. They may block: they run on none of
        /// Swift's own threads.
        public var resolvers: [String: @Sendable (MutationInQuestion) async throws -> ConflictResolution] = [:]
        /// Functions that tell whether a mutation took effect whose answer was lost, by the name that a mutation says.
        /// They may block as well.
        public var checks: [String: @Sendable (MutationInQuestion) async throws -> CheckedOutcome] = [:]
        /// How long a resolver or a check may take; one that takes longer has not answered.
        public var questionTimeout = Duration.seconds(30)
        /// A number from 0 to 1, by which pauses are spread; tests hold it.
        package var random: @Sendable () -> Double = { .random(in: 0...1) }

        /// Called after each step; for programs that are killed there.
        package var reached: @Sendable (MutationRunner.KillPoint) -> Void = { _ in }

        /// Thirty seconds an exchange, eight lanes, no resolvers and no checks.
        public init() {}
    }

    /// How transfers are carried out. Sizes in bytes.
    public struct Transfers: Sendable {
        /// How many transfers are under way side by side.
        public var maximumTransfers = 8
        /// How many exchanges that carry bytes there are with one host at a time.
        public var connectionsPerHost = 6
        /// Files of more than this are sent in parts.
        public var multipartThreshold: Int64 = 16 << 20
        /// How large parts and ranges are; larger where the storage would not take so many.
        public var partSize: Int64 = 8 << 20
        /// How many bytes may be moved in a second, both ways together; nil for as many as there can be.
        public var bandwidth: Int64?
        /// Carries whole files outside of this program, so that `maximumTransfers` of them go on while the program is
        /// suspended or dead; nil: this process carries them itself, and leaves what an executor of another runner has.
        /// It is the way to the storage without a name: what others have, and files that the storage does not take in
        /// one piece, the process carries itself.
        public var background: (any BackgroundTransport)?
        /// After so long without a byte an exchange is given up, and tried again. An object that was sent in one piece,
        /// and not answered, keeps later uploads of its key waiting for so long.
        public var idle = Duration.seconds(30)
        /// How long an exchange may take that carries no bytes.
        public var timeout = Duration.seconds(30)
        /// How long the storage may take to put an object together from its parts. Where it does not answer, later
        /// uploads of the key wait for so long.
        public var completionTimeout = Duration.seconds(600)
        /// How long to wait after a failure.
        package var backoff = Backoff(first: .seconds(1), cap: .seconds(120))
        /// After so many failures of the server or the connection in a row, with nothing that arrived between them, a
        /// transfer is failed. That the server cannot be reached, or asks for patience, is none.
        public var maximumFaults = 10
        /// Whether the network is there: as the system says.
        public var connectivity: any Connectivity = systemConnectivity()
        /// A number from 0 to 1, by which pauses are spread; tests hold it.
        package var random: @Sendable () -> Double = { .random(in: 0...1) }

        /// Called after each step; for programs that are killed there.
        package var reached: @Sendable (TransferRunner.KillPoint) -> Void = { _ in }

        /// Eight transfers, six connections with a host, parts of 8 MiB, no limit of bandwidth.
        public init() {}

        /// How long to wait after so many failures in a row, and at least for as long as the storage asked.
        func pause(after failures: Int, asked: Duration? = nil) -> Duration {
            backoff.pause(after: failures, asked: asked, fraction: random())
        }
    }
}

/// Within what bounds `Partition.run` keeps the cache, and when it looks.
public struct CacheUpkeep: Sendable, Hashable {
    /// The bytes that the cache's pages may take: beyond it garbage is collected, and then what came and was read longest
    /// ago goes. Nil for no bound.
    public var maxBytes: Int?
    /// What came longer ago goes. Nil for no such age.
    public var maxAge: Duration?
    /// How long to wait from one look to the next. A look at a cache within its bytes costs next to nothing.
    package var interval = Duration.seconds(60)

    /// No bounds, unless given.
    public init(maxBytes: Int? = nil, maxAge: Duration? = nil) {
        (self.maxBytes, self.maxAge) = (maxBytes, maxAge)
    }
}
