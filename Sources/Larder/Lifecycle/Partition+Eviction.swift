import LarderOperations
public import LarderRecords

extension Partition {
    /// Lets go of what the cache has had for too long, and of garbage after that; and, where the cache takes more bytes than
    /// it may, of garbage and of what came and was read longest ago, approximately.
    ///
    /// What watchers of this process, named watchers and pins are made of stays, and what queued mutations name. What
    /// goes is a miss until it comes again. Reads and writes go on meanwhile. `RunOptions` has `run` do it.
    ///
    /// - Parameters:
    ///   - maxBytes: The bytes that the cache's pages may take, those of its log of changes apart; the file itself is not
    ///     made smaller.
    ///   - maxAge: What came longer ago goes, objects and answers to queries.
    ///   - isRehearsal: Whether it is only counted what would go.
    /// - Throws: `records.full` where more than `maxBytes` is needed, after all else is gone; the message says what
    ///   holds it. `records.busy` where a collection is under way in this process; otherwise as
    ///   ``collectGarbage(isRehearsal:progress:)``.
    /// - Complexity: O(n) in the cache's size; O(1) where the bound is kept and there is no maximum age.
    @discardableResult
    public func evict(
        maxBytes: Int? = nil, maxAge: Duration? = nil, isRehearsal: Bool = false
    ) async throws(LarderError) -> EvictionReport {
        try await evict(maxBytes, maxAge, isRehearsal: isRehearsal, sliceTime: .milliseconds(4))
    }

    /// - Parameter sliceTime: For how long it reads, or keeps other writes waiting, at a time.
    package func evict(
        _ maxBytes: Int?, _ maxAge: Duration?, isRehearsal: Bool = false, sliceTime: Duration,
        progress: @Sendable () -> Void = {}
    ) async throws(LarderError) -> EvictionReport {
        try await core.requireAwake()
        let rule = EvictionRule(maximumBytes: maxBytes, maximumAge: maxAge)
        let report = try await noting { (needed) async throws(RecordError) in
            try await core.cache.evict(
                rule, keeping: needed, isRehearsal: isRehearsal, sliceTime: sliceTime, progress: progress)
        }
        guard !Task.isCancelled else {
            throw LarderError(.cancelled, "The task was cancelled while the cache was made smaller")
        }
        guard !isRehearsal, let maxBytes, report.bytesInUse > maxBytes else { return report }
        let own: Int
        do { own = try core.cache.bytesOfOwnTables() } catch { throw LarderError.parking(error) }
        let holders = try holders()
        throw LarderError(
            .init(rawValue: RecordError.Code.full.rawValue),
            "The cache takes \(report.bytesInUse) bytes and may take \(maxBytes), and nothing more may go: "
                + (holders.isEmpty ? "" : "the rest is needed by \(holders.joined(separator: ", by ")), and ")
                + "its own tables take \(own) bytes; allow more, \(holders.isEmpty ? "or compact it" : "or need less")")
    }

    /// Who needs something, for a message.
    private func holders() throws(LarderError) -> [String] {
        let names = try pins().map(\.name)
        let pins = names.prefix(20) + (names.count > 20 ? ["and \(names.count - 20) more"] : [])
        var found = pins.isEmpty ? [] : ["the pins \(pins.joined(separator: ", "))"]
        let hasNamedWatchers = try hasNamedWatchers()
        if core.watchers.hasInterests || hasNamedWatchers { found.append("watchers") }
        if try !mutations(in: [.pending, .inFlight, .acknowledged]).isEmpty { found.append("queued mutations") }
        return found
    }

    private func hasNamedWatchers() throws(LarderError) -> Bool {
        guard let database = try core.operationsStore.database(making: false) else { return false }
        do { return try !database.watchers.list(in: core.name).isEmpty } catch { throw LarderError(error) }
    }

    /// Runs `body`, which watchers that begin meanwhile are told of.
    func noting<Report>(
        _ body: (NeededObjects) async throws(RecordError) -> Report
    ) async throws(LarderError) -> Report {
        guard core.watchers.beginNoting() else {
            throw LarderError(
                .init(rawValue: RecordError.Code.busy.rawValue),
                "Garbage is being collected in this partition; wait until that has ended")
        }
        defer { core.watchers.endNoting() }
        do throws(RecordError) { return try await body(NeededObjects(core)) } catch {
            throw error.cause as? LarderError ?? LarderError.parking(error)
        }
    }

    /// Keeps the cache in order until the task is cancelled.
    ///
    /// - Parameters:
    ///   - isInOrder: Whether it is in order now.
    ///   - failed: Told what kept it from that.
    package func keepInOrder(
        _ options: CacheUpkeep, isInOrder: Bool = false, failed: (any Error) -> Void = { _ in }
    ) async {
        if isInOrder { await CancellableTimer.wait(until: .now + options.interval) }
        while !Task.isCancelled {
            await putInOrder(options, failed: failed)
            await CancellableTimer.wait(until: .now + options.interval)
        }
    }

    /// Puts the cache in order once.
    package func putInOrder(_ options: CacheUpkeep, failed: (any Error) -> Void) async {
        // A bound that cannot be kept keeps nothing from going by its age.
        for step in [keepAge, keepSize] {
            do { try await step(options) } catch let error as LarderError where error.code == .cancelled {
                return
            } catch {
                core.logger.warning("the cache could not be kept in order", metadata: ["error": "\(error)"])
                failed(error)
            }
        }
    }

    private func keepAge(_ options: CacheUpkeep) async throws {
        if let age = options.maxAge { try await evict(maxAge: age) }
    }

    private func keepSize(_ options: CacheUpkeep) async throws {
        guard let bytes = options.maxBytes, try core.cache.bytesInUse() > bytes else { return }
        // Somewhat less, so that the next answers fit, as far as may go.
        do { try await evict(maxBytes: bytes / 10 * 9) } catch {
            guard error.code.rawValue == RecordError.Code.full.rawValue, try core.cache.bytesInUse() <= bytes else {
                throw error
            }
        }
    }
}
