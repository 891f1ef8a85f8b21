import LarderFiles
import LarderRecords

extension Partition {
    /// Subscribes to an operation of the server: each event enters the cache as an answer would, and wakes the watchers
    /// that it concerns, whether anything reads the events or not.
    ///
    /// The connection is opened again for as long as the subscription lasts. What happens while it is down is a gap,
    /// which the state tells (`staleSince`) and the options' query closes. Equal subscriptions, with equal options, share
    /// one at the server; all of a partition's share one connection.
    ///
    /// ```swift
    /// let orders = try await app.subscribe(onOrder, options: SubscriptionOptions(catchUp: latestOrders))
    /// ```
    ///
    /// - Returns: The events. The subscription lasts as long as this value does.
    /// - Throws: `.noTransport` where the partition's transport carries no subscriptions; `.operation`, `.variables` or
    ///   `.syntax` for what cannot be asked; `.parked`.
    public func subscribe(
        _ operation: GraphQLOperation, options: SubscriptionOptions = SubscriptionOptions()
    ) async throws(LarderError) -> Subscription {
        let operation = try core.withRealIDs(operation)
        let bound = try core.operations.bound(operation)
        try core.requireCurrent()
        guard bound.layout.plan.kind == .subscription else {
            throw LarderError(
                .operation,
                "The function subscribe takes subscriptions, and this is a \(bound.layout.plan.kind.rawValue)")
        }
        if let synchronization = options.sync {
            try check(synchronization)
        } else if let catchUp = options.catchUp {
            _ = try core.operations.bound(query: catchUp)
        }
        guard let transport = transport as? any SubscriptionTransport else {
            throw LarderError(.noTransport, "The partition's transport carries no subscriptions")
        }
        let request = try core.request(operation, bound, headers: options.headers)
        let hub = core.subscriptions.hub(of: transport, self)
        let events = SubscriptionEvents(limit: options.bufferSize)
        await hub.add(events, request, bound, options)
        return Subscription(lease: Subscription.Lease(events, hub))
    }
}

/// The connections for subscriptions that a partition has: one for each transport.
final class PartitionSubscriptions: Sendable {
    private struct State {
        var hubs: [SubscriptionHub] = []
        var isClosed = false
    }

    private let state = Locked(State())

    func hub(of transport: any SubscriptionTransport, _ partition: Partition) -> SubscriptionHub {
        state.withLock { state in
            if let hub = state.hubs.first(where: { $0.transport === transport }) { return hub }
            let hub = SubscriptionHub(partition, transport)
            // Closed, it refuses the subscription: `keep`.
            if !state.isClosed { state.hubs.append(hub) }
            return hub
        }
    }

    /// Notes a hub that has something to do; false after the close.
    func keep(_ hub: SubscriptionHub) -> Bool {
        state.withLock { state in
            if !state.isClosed, !state.hubs.contains(where: { $0 === hub }) { state.hubs.append(hub) }
            return !state.isClosed
        }
    }

    /// Lets go of a hub that has nothing to do.
    func remove(_ hub: SubscriptionHub) { state.withLock { $0.hubs.removeAll { $0 === hub } } }

    /// Ends all subscriptions: what their connections bring from now on is dropped.
    func close() {
        let ended = state.withLock { state in
            defer { state = State(isClosed: true) }
            return state.hubs
        }
        for hub in ended { Task { await hub.close() } }
    }

    /// Ends the connections, which are opened again once the store is not suspended any more.
    func breakOff() async { for hub in state.withLock({ $0.hubs }) { await hub.breakOff() } }

    /// Fetches for all subscriptions what they may have missed.
    func noteMissed() async { for hub in state.withLock({ $0.hubs }) { await hub.noteMissed() } }

    func reopen() { state.withLock { $0.isClosed = false } }
}
