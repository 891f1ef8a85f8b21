import LarderRecords

/// Starts subscriptions, and gives up a connection whose server does not acknowledge one in time.
extension SubscriptionHub {
    /// Asks the server to begin the subscriptions that do not run there.
    func start(_ entries: some Sequence<Entry>) {
        guard let line = main, line.isOpen else { return }
        let waiting = entries.filter { $0.id == nil }
        line.ask(
            waiting.map { entry in
                let id = newID()
                (entry.id, entry.line) = (id, line.number)
                return .start(id: id, entry.request)
            })
        for entry in waiting { waitForStart(of: entry, on: line) }
    }

    /// Gives the connection up where the server does not acknowledge the start in time. Otherwise the subscription
    /// could wait for ever.
    ///
    /// - Parameter line: The main one, or the one that becomes it in this turn of the hub.
    func waitForStart(of entry: Entry, on line: Line) {
        entry.startDeadline = .now + pacing.starting
        guard line.startWatch == nil else { return }
        let number = line.number
        line.startWatch = Task { await self.watchStarts(on: number) }
    }

    /// One task for all starts on a connection: a timer for each costs more than the start.
    private func watchStarts(on number: Int) async {
        while let line = main, line.number == number, !Task.isCancelled {
            let waiting = entries.values.filter { $0.line == number && $0.id != nil && !$0.hasStarted }
            guard let deadline = waiting.compactMap(\.startDeadline).min() else {
                line.startWatch = nil
                return
            }
            guard deadline <= .now else {
                await CancellableTimer.wait(until: deadline)
                continue
            }
            line.ownEnd = TransportError(
                .timedOut, "The server did not acknowledge a subscription within \(pacing.starting)")
            return line.commands.finish()
        }
    }
}
