import LarderRecords

/// Asking for subscriptions on a connection.
extension SubscriptionHub {
    func start(_ entry: Entry) {
        guard let line = main, line.isOpen, entry.id == nil else { return }
        lastID += 1
        let id = String(lastID)
        (entry.id, entry.line) = (id, line.number)
        line.commands.yield(.start(id: id, entry.request))
        waitForStart(of: entry, on: line)
    }

    /// Gives the connection up where the server does not acknowledge the subscription in time: it may be waited for in
    /// vain for ever.
    func waitForStart(of entry: Entry, on line: Line) {
        entry.startDeadline = .now + pacing.starting
        guard line.startWatch == nil else { return }
        let number = line.number
        line.startWatch = Task { await self.watchStarts(on: number) }
    }

    /// One wait for all of a connection: a timer of each would cost more than its start.
    private func watchStarts(on number: Int) async {
        while let line = main, line.number == number, !Task.isCancelled {
            let waiting = entries.values.filter { $0.line == number && $0.id != nil && !$0.hasStarted }
            guard let deadline = waiting.map(\.startDeadline).min() else {
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
