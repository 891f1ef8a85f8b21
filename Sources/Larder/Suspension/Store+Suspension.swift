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
    /// A ``resume()`` meanwhile, from any task or thread, takes the suspension back, and so does a cancellation.
    ///
    /// - Parameter time: How long it may take; an app has some 25 seconds once it has left the screen.
    /// - Throws: `.timedOut` or `records.busy` where a call or an exchange does not end in time, `.cancelled` where the
    ///   store was resumed or the task was cancelled meanwhile, `.suspended` where the store is suspended already,
    ///   `.parked` where it was closed, `records.…` and `operations.…` where a file cannot be closed. Then the store goes on as if it had not
    ///   been asked, but for `.suspended`; where a file cannot be opened again it stays suspended, and `resume` says why.
    public func suspend(within time: Duration = .seconds(20)) async throws(LarderError) {
        let deadline = SuspendingClock.now + time
        let number = try await suspension.ask(until: deadline)
        notifyRunners()
        do throws(LarderError) {
            for partition in partitions.all() { await partition.core.subscriptions.breakOff() }
            guard try await suspension.workHasEnded(number, within: time) else {
                throw LarderError(
                    .timedOut, "An exchange with a server was broken off and did not end in time; allow more time")
            }
            await partitions.endFollowing()
            try suspension.beginClosing(number)
        } catch {
            if suspension.giveUp(number) { notifyRunners() }
            // Also where `resume` came before others' changes were looked for no more.
            partitions.followAgain()
            throw error
        }
        // Swift's own few threads may all wait for this, in `resume` or `close`.
        let closing = Task(executorPreference: OutsideExecutor()) { try await self.closeFiles(number, deadline) }
        do {
            try await withTaskCancellationHandler {
                try await closing.value
            } onCancel: {
                suspension.withdraw(number)
            }
        } catch { throw LarderError(translating: error) }
    }

    private func closeFiles(_ number: Int, _ deadline: SuspendingClock.Instant) async throws(LarderError) {
        do {
            for partition in partitions.all() { try await closeCache(of: partition, number, deadline) }
            try operationsStore.suspend(until: deadline) { suspension.isClosing(number) }
        } catch {
            let isUnwanted = !suspension.isClosing(number)
            suspension.endClosingInPart()
            // What failed first is what is told; what cannot be opened again is what `resume` throws.
            try? resume()
            guard isUnwanted else { throw LarderError(translating: error) }
            throw suspension.isEnded ? LarderError.parked : LarderError.unsuspended
        }
        do throws(LarderError) { try suspension.endClosing(number) } catch {
            try? resume()
            throw error
        }
    }

    /// Closes a cache, and heeds between two attempts whether that is still wanted: a read that is under way may take as
    /// long as the whole time.
    private func closeCache(
        of partition: Partition, _ number: Int, _ deadline: SuspendingClock.Instant
    ) async throws(RecordError) {
        let cache = partition.core.cache
        var time = Duration.milliseconds(50)
        while true {
            do throws(RecordError) { return try await cache.suspend(until: min(deadline, .now + time)) } catch {
                guard error.code == .busy, .now < deadline, suspension.isClosing(number) else { throw error }
                time = min(time * 2, .milliseconds(400))
            }
        }
    }

    /// Takes up again what `suspend` has given back. Uses no network, and waits for other processes no longer than the
    /// store's options say; so it may be called before the first frame is drawn. It takes back a suspension that is under
    /// way, and waits for the file that is being closed at this moment.
    ///
    /// Does nothing where the store is not suspended. What other processes have changed meanwhile is noticed as ever.
    ///
    /// - Throws: As opening does. Then the store is suspended still, and `resume` may be called again.
    public func resume() throws(LarderError) {
        while true {
            switch suspension.beginOpening() {
            case .needless: return
            case .lifted: return goOn()
            case .opening:
                do throws(LarderError) { try openFiles() } catch {
                    suspension.endOpening(isWhole: false)
                    throw error
                }
                suspension.endOpening(isWhole: true)
                return goOn()
            case .moving:
                guard suspension.filesRest(until: .now + options.lockTimeout + .seconds(5)) else {
                    throw LarderError(.timedOut, "Another call closes or opens the store's files; resume it again")
                }
            }
        }
    }

    private func openFiles() throws(LarderError) {
        try operationsStore.resume()
        for partition in partitions.all() {
            do throws(RecordError) { try partition.core.cache.resume() } catch { throw LarderError.parking(error) }
        }
    }

    private func goOn() {
        partitions.followAgain()
        notifyRunners()
    }

    /// Wakes what waits for something to do.
    func notifyRunners() {
        operationsStore.changeSignal.notify()
        for partition in partitions.all() { partition.core.transfers.notifyAll() }
    }
}
