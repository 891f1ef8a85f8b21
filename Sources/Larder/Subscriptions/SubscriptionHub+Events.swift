import Foundation
import LarderRecords

/// Storing events, and closing gaps.
extension SubscriptionHub {
    /// How many events wait to be stored, or for the answer that catches up with their subscription.
    private static let room = 1_024
    /// How many bytes the events have that wait to be stored, and those that wait for answers that catch up: of all
    /// subscriptions together.
    private static let roomInBytes = 16 << 20

    // MARK: Catching up

    /// Fetches what was missed; events that come meanwhile are held back.
    func catchUp(_ entry: Entry, attempt: Int) {
        guard let catchUp = entry.catchUp else {
            entry.change { state in
                state.phase = .live
                state.error = nil
            }
            return
        }
        drop(entry)
        (entry.held, entry.hasOverflown) = ([], false)
        entry.round += 1
        entry.change { $0.phase = .catchingUp }
        let (round, partition) = (entry.round, partition)
        var options = FetchOptions()
        options.headers = entry.headers
        let earlier = entry.fetching
        let fetching = Task { [options] in
            await earlier?.value
            // What came before the answer is stored before it.
            await self.storeAll()
            let end: Result<Void, LarderError>
            do throws(LarderError) {
                switch catchUp {
                case .query(let query):
                    _ = try await partition.fetch(query, policy: .networkOnly, options: options)
                case .sync(var synchronization):
                    synchronization.maximumPageCount = nil
                    if synchronization.headers.isEmpty { synchronization.headers = options.headers }
                    try await partition.sync(synchronization)
                }
                end = .success(())
            } catch { end = .failure(error) }
            await self.noteCaughtUp(entry, round: round, attempt: attempt, end)
        }
        (entry.task, entry.fetching) = (fetching, fetching)
    }

    private func noteCaughtUp(
        _ entry: Entry, round: Int, attempt: Int, _ end: Result<Void, LarderError>
    ) async {
        guard isCurrent(entry, round) else { return }
        let hasOverflown = entry.hasOverflown
        release(entry)
        entry.held = nil
        // What was held back is in the cache before a reader is told that it has missed nothing.
        await storeAll()
        guard isCurrent(entry, round) else { return }
        switch end {
        case .success where !hasOverflown:
            entry.change { state in
                (state.phase, state.staleSince, state.error) = (.live, nil, nil)
            }
            noteComplete(entry)
        // More came than could be held back: what was dropped is fetched once more.
        case .success: catchUp(entry, attempt: 1)
        case .failure(let error):
            entry.change { $0.error = error }
            tryAgain(entry, round: round, attempt: attempt)
        }
    }

    /// Lets what was held back be stored, in its order.
    private func release(_ entry: Entry) {
        for response in entry.held ?? [] { unstored.append((entry, response, heard(entry))) }
        unstoredBytes += entry.heldBytes
        heldBytes -= entry.heldBytes
        (entry.held, entry.heldBytes) = (entry.held == nil ? nil : [], 0)
    }

    /// Lets go of what was held back.
    func drop(_ entry: Entry) {
        heldBytes -= entry.heldBytes
        (entry.held, entry.heldBytes) = (nil, 0)
    }

    private func tryAgain(_ entry: Entry, round: Int, attempt: Int) {
        let pause = pacing.backoff.pause(after: attempt, fraction: Double.random(in: 0.5...1))
        entry.task = Task {
            guard await CancellableTimer.wait(until: .now + pause), self.isCurrent(entry, round) else { return }
            self.catchUp(entry, attempt: attempt + 1)
        }
    }

    /// Notes that an event could not be stored whole, and fetches the query that catches up, unless that is under way.
    ///
    /// - Parameter since: Until when all before the event had come; nil where that is when the connection was heard of
    ///   last.
    func missedEvent(_ entry: Entry, _ error: LarderError?, since: Date? = nil) {
        let since = since ?? heard(entry)
        // What was complete until now is not any more.
        unnoted[entry.positionKey] = nil
        entry.change { state in
            state.noteGap(since)
            state.error = error ?? state.error
        }
        if entry.catchUp != nil, entry.hasStarted, entry.held == nil { catchUp(entry, attempt: 1) }
    }

    /// When the connection of a subscription was heard of last.
    private func heard(_ entry: Entry) -> Date { line(of: entry)?.heard ?? partition.core.now() }

    // MARK: Storing

    /// Takes an event. Returns when there is room for another.
    func take(_ response: [UInt8], of entry: Entry) async {
        append(response, of: entry)
        guard unstored.count >= Self.room || unstoredBytes >= Self.roomInBytes else { return store() }
        await storeAll()
    }

    /// Lets an event be stored after those before it, or held back with them.
    func append(_ response: [UInt8], of entry: Entry) {
        guard entry.held == nil else {
            if hasRoom(beside: entry.held?.count ?? 0, for: response) {
                entry.held?.append(response)
                entry.heldBytes += response.count
                heldBytes += response.count
            } else {
                entry.hasOverflown = true
            }
            return
        }
        unstored.append((entry, response, heard(entry)))
        unstoredBytes += response.count
    }

    /// Whether another event can be held back.
    func hasRoom(beside count: Int, for response: [UInt8]) -> Bool {
        count < Self.room && heldBytes + response.count <= Self.roomInBytes
    }

    func store() {
        guard storing == nil, !unstored.isEmpty else { return }
        storing = Task { await self.storeWaiting() }
    }

    /// Stores what has come before the end of a subscription, also what waits for an answer that catches up.
    func storeAll(before id: String) async {
        if let entry = entry(id) { release(entry) }
        await storeAll()
    }

    /// Stores what waits, and tells the readers.
    func storeAll() async {
        store()
        await storing?.value
    }

    /// Stores what waits, as many events in a commit as have come since the one before.
    private func storeWaiting() async {
        defer { storing = nil }
        while !unstored.isEmpty {
            let events = unstored
            (unstored, unstoredBytes) = ([], 0)
            let results = await Self.parse(
                events.map { ($0.response, $0.entry.operation.layout, ignoresNulls: $0.entry.nulls != .trust) })
            var parsed: [(entry: Entry, response: ParsedResponse, since: Date)] = []
            for ((entry, _, since), result) in zip(events, results) {
                do throws(RecordError) {
                    let event = try result.get()
                    parsed.append((entry, event, since))
                    // Of an object that the server could not send whole, nothing came.
                    if !event.hasAnswers {
                        missedEvent(
                            entry, LarderError(.serverErrors, "An event came without data", errors: event.errors),
                            since: since)
                    } else if entry.nulls == .fetch, event.leavesUnanswered {
                        missedEvent(entry, nil, since: since)
                    }
                } catch { missedEvent(entry, LarderError(error), since: since) }
            }
            guard !partition.core.isParked else { return }
            let outcomes = await partition.core.cache.write(
                parsed.map { (parsed: $0.response, operation: $0.entry.operation) })
            for ((entry, response, since), outcome) in zip(parsed, outcomes) {
                switch outcome {
                case .success:
                    tell(entry, response)
                    noteComplete(entry, atMostEach: 10)
                case .failure(let error): missedEvent(entry, LarderError(error), since: since)
                }
            }
        }
    }

    /// Parses events beside the hub, which takes others meanwhile.
    @concurrent private nonisolated static func parse(
        _ events: [(response: [UInt8], layout: PlanLayout, ignoresNulls: Bool)]
    ) async -> [Result<ParsedResponse, RecordError>] {
        events.map { event in
            Result { () throws(RecordError) in
                try ParsedResponse.parse(event.response, along: event.layout, ignoresNulls: event.ignoresNulls)
            }
        }
    }

    private func tell(_ entry: Entry, _ parsed: ParsedResponse) {
        do throws(RecordError) {
            let response = try parsed.assembled()
            for reader in entry.readers { reader.add(response) }
        } catch { entry.change { $0.error = LarderError(error) } }
    }
}
