import Dispatch
import LarderGraphQL
import LarderLMDB

/// A normalized cache of records: what a server said, by object and field.
///
/// Reads are synchronous, take a snapshot and wait for no writer, unless another process has made the file larger than
/// this process's map. Writes are made one after the other on one thread. A write that has returned survives the death
/// of the process; power loss may take back the last ones, unless `Options` say otherwise.
package final class RecordCache: Sendable {
    package let options: Options
    let generations: Generations
    let layers: LayerStack
    let observers: CommitObservers
    let layerTelling: LayerPublisher
    let writer: WriteQueue

    /// Opens the cache in a folder, which is made unless `options` says read-only.
    ///
    /// - Parameter stamp: Names what the cache belongs to; one with another stamp is not opened.
    package init(folder path: String, stamp: String, options: Options = Options()) throws(RecordError) {
        self.options = options
        let folder = GenerationFolder(path: path, stamp: stamp, options: options)
        let first = try translated { try folder.openCurrent() }
        // Each knows those before it, and none knows one that comes after.
        let thread = DispatchQueue(label: "\(options.label).records.writer")
        observers = CommitObservers(on: thread)
        generations = Generations(first, in: folder, observers)
        layers = LayerStack(options)
        layerTelling = LayerPublisher(on: thread, layers, over: generations, observers)
        writer = WriteQueue(
            on: thread, generations, telling: observers, layerTelling, stampingAfter: options.idleDelay,
            timing: options.committed, watched: options.watchedFolder)
        // What others commit from now on is news, also where nothing looks for it until the cache was suspended.
        _ = try translated { try observers.others.look(generations) }
    }

    /// Closes cleanly, so that the next opening is quick. Reads and writes that are under way end first.
    package func close() throws(RecordError) {
        try translated { try generations.close() }
    }

    /// Closes cleanly, and gives back every lock and file, until the next read or write, which opens it again. Reads and
    /// writes that are under way end first; none waits for this.
    package func rest() throws(RecordError) {
        try translated { try generations.rest() }
    }

    /// Closes cleanly until `resume`, and gives back every lock and every file. Calls meanwhile wait for as long as
    /// `Options.suspensionWait`, and then throw `.suspended`.
    ///
    /// - Throws: `.busy` where a read or a write is under way past the deadline; then nothing is suspended.
    package func suspend(until deadline: SuspendingClock.Instant) async throws(RecordError) {
        try await writer.betweenWrites(until: deadline) {
            if !self.options.isReadOnly { try self.writer.beginEpochIfDue(until: deadline) }
            try self.generations.suspend(until: deadline)
        }
    }

    /// Opens again what is current by now. Watchers are told of what other processes have committed meanwhile, and those
    /// that could not read are woken.
    package func resume() throws(RecordError) {
        try translated { try generations.resume() }
        observers.tellSoon {
            let wake = Commit(
                generation: self.generations.current.identity, changes: ChangeSet(),
                position: ChangePosition(epoch: 0, number: 0))
            // What cannot be read now is told at a later look.
            return [wake] + ((try? self.observers.others.look(self.generations)) ?? [])
        }
    }

    /// Makes everything durable, and stamps the file as closing would: if the process is killed before it writes again,
    /// the next opening is as quick as after a clean close. The next write withdraws the stamp.
    ///
    /// Without this call the cache does so itself, once nothing was written for `Options.idleDelay`.
    ///
    /// - Throws: `.busy` where the writer has other work until the deadline; `.closed`; what kept the disk from it.
    package func stamp(deadline: SuspendingClock.Instant? = nil) async throws(RecordError) {
        guard !options.isReadOnly else { return }
        let generations = generations
        try await writer.betweenWrites(until: deadline ?? .now + options.lockTimeout) {
            try generations.current.environment.stamp()
        }
    }

    /// Throws what every write would, so that a caller can ask before it fetches what it will write.
    ///
    /// - Throws: `.closed`, or `.notWritable` where the cache was opened to be read only.
    package func checkWritable() throws(RecordError) {
        try generations.checkOpen()
        guard !options.isReadOnly else {
            throw RecordError(.notWritable, "The record cache was opened to be read only; open it for writing")
        }
    }

    // MARK: Reading

    /// Where an answer starts.
    package enum Root: Sendable {
        case query
        /// An object, by its cache key.
        case object(key: String)

        var key: String {
            switch self {
            case .query: CacheKey.queryRoot.text
            case .object(let key): key
            }
        }
    }

    /// Answers an operation from one snapshot and the optimistic layers over it.
    ///
    /// - Parameter ignoringLayers: Whether the layers are left out: the answer is what is stored.
    package func read(
        _ operation: BoundOperation, from root: Root = .query, ignoringLayers: Bool = false
    ) throws(RecordError) -> CacheAnswer {
        let answer = try translated {
            // Before the snapshot: a layer that is gone by now is gone because what is read then knows of its mutation.
            if !ignoringLayers, let layers = layers.current {
                return try withLayers(layers) { generation, snapshot in
                    try generation.answer(operation, from: root, snapshot)
                }
            }
            return try generations.withSnapshot { generation, transaction in
                try generation.answer(operation, from: root, transaction)
            }
        }
        if answer.plan.generation.keepsUse { answer.plan.generation.used.note(answer) }
        return answer
    }

    /// Answers several operations from one snapshot and the optimistic layers over it.
    package func read(_ operations: [BoundOperation]) throws(RecordError) -> [CacheAnswer] {
        let answers = try translated {
            if let layers = layers.current {
                return try withLayers(layers) { generation, snapshot in
                    try operations.map { try generation.answer($0, from: .query, snapshot) }
                }
            }
            return try generations.withSnapshot { generation, transaction in
                try operations.map { try generation.answer($0, from: .query, transaction) }
            }
        }
        for answer in answers where answer.plan.generation.keepsUse { answer.plan.generation.used.note(answer) }
        return answers
    }

    /// Calls `observer` with everything that this process commits from now on, in order, on the writer's thread; and
    /// with what optimistic layers make different, which is no commit.
    ///
    /// - Parameter isListening: Whether the observer has listeners. What layers make different is worked out only
    ///   then; once there are listeners again, the observer is told that everything may be different.
    package func observe(
        while isListening: @escaping @Sendable () -> Bool = { true }, _ observer: @escaping @Sendable (Commit) -> Void
    ) {
        observers.add(Observer(isListening: isListening, tell: observer))
    }
}

extension RecordCache.Root: Hashable {
    /// Keys are compared by their bytes.
    package static func == (left: RecordCache.Root, right: RecordCache.Root) -> Bool {
        switch (left, right) {
        case (.query, .query): true
        case (.object(let left), .object(let right)): left.hasSameBytes(as: right)
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        if case .object(let key) = self { hasher.combineBytes(of: key) }
    }
}
