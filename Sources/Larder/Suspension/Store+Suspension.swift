import LarderOperations
import LarderRecords

extension Store {
    /// Gives back every lock and every file of the store, until `resume`: an app may be suspended then, or killed while
    /// it is, and another process may compact, back up or restore the store meanwhile.
    ///
    /// Runners begin nothing more and end at their next safe point: a mutation is not begun, or its answer is stored; a
    /// transfer goes on later with the parts that have arrived. Exchanges that take longer than half of the time are
    /// broken off, and what becomes of their mutations is decided as after a lost connection. Then the caches are closed
    /// cleanly, so that the next opening walks nothing.
    ///
    /// Calls meanwhile throw `.suspended`, or wait for as long as ``Options/suspensionWait`` says. Runners, streams and
    /// waits for an outcome stand still until `resume`, and their deadlines with them.
    ///
    /// - Parameter time: How long it may take; an app has some 25 seconds once it has left the screen.
    /// - Throws: `.timedOut` where a call or an exchange does not end in time, `.suspended` where the store is suspended
    ///   already, `.parked` where it was closed, `records.…` and `operations.…` where a file cannot be closed. Then the
    ///   store goes on as if it had not been asked.
    public func suspend(within time: Duration = .seconds(20)) async throws(LarderError) {
        let deadline = ContinuousClock.now + time
        try suspension.ask()
        notifyRunners()
        do {
            for partition in partitions.all() { await partition.core.subscriptions.breakOff() }
            guard await suspension.workHasEnded(within: time) else {
                throw LarderError(
                    .timedOut, "An exchange with a server was broken off and did not end in time; allow more time")
            }
            await partitions.endFollowing()
            for partition in partitions.all() { try await partition.core.cache.suspend(until: deadline) }
            // It waits for calls that need Swift's own few threads to end.
            let store = operationsStore
            try await Task(executorPreference: OutsideExecutor()) { try store.suspend(until: deadline) }.value
        } catch {
            // What failed first is what is told; what cannot be opened again says so at its next use.
            try? resume()
            throw LarderError(translating: error)
        }
    }

    /// Takes up again what `suspend` has given back. Uses no network, and waits for other processes no longer than the
    /// store's options say; so it may be called before the first frame is drawn.
    ///
    /// Does nothing where the store is not suspended. What other processes have changed meanwhile is noticed as ever.
    ///
    /// - Throws: As opening does. Then the store is suspended still, and `resume` may be called again.
    public func resume() throws(LarderError) {
        guard suspension.isAsked else { return }
        try operationsStore.resume()
        for partition in partitions.all() {
            do throws(RecordError) { try partition.core.cache.resume() } catch { throw LarderError.parking(error) }
        }
        suspension.withdraw()
        partitions.followAgain()
        notifyRunners()
    }

    private func notifyRunners() {
        operationsStore.changeSignal.notify()
        for partition in partitions.all() { partition.core.transfers.notifyAll() }
    }
}
