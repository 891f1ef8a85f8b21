public import Foundation
public import LarderRecords

/// What a subscription asks besides its operation.
public struct SubscriptionOptions: Sendable {
    /// The query that closes a gap: it is fetched whenever the subscription has begun, also for the first time, and
    /// events that come meanwhile are stored after its answer. Nil where the program itself fetches what was missed.
    public var catchUp: GraphQLOperation?
    /// What closes a gap in place of `catchUp`: only what has changed is fetched.
    public var sync: Synchronization?
    /// What null means in an event; nil for what the transport says.
    public var nulls: NullsInEvents?
    /// How many events wait for a slow reader, at least 1. Beyond that the oldest is dropped, and `.missed` counts it.
    public var bufferSize = 256
    /// Headers of the request that catches up. A transport of the program's own gets them with the start as well;
    /// `HTTPTransport` and `AppSyncTransport` do not send them with it.
    public var headers: [GraphQLRequest.Header] = []

    /// No query that catches up, and what the transport says.
    public init(catchUp: GraphQLOperation? = nil) { self.catchUp = catchUp }

    /// Closes gaps by a synchronization.
    public init(sync: Synchronization) { self.sync = sync }
}

/// Where a subscription stands.
public struct SubscriptionState: Sendable {
    /// What the subscription does.
    public enum Phase: Sendable, Hashable {
        /// It waits for a connection, or for the server to acknowledge it.
        case connecting
        /// It has begun, and what was missed is being fetched.
        case catchingUp
        /// Events come as things change.
        case live
        /// There will be no more events.
        case ended
    }

    /// What the subscription does.
    public internal(set) var phase = Phase.connecting
    /// Since when changes may have been missed, by this device's clock; nil where none are missing.
    public internal(set) var staleSince: Date?
    /// Why the last attempt brought nothing, or why the subscription has ended.
    public internal(set) var error: LarderError?
    /// How often something may have been missed.
    var gapCount = 0

    func isSame(as other: SubscriptionState) -> Bool {
        phase == other.phase && staleSince == other.staleSince && gapCount == other.gapCount
            && error?.code == other.error?.code
            && error?.message == other.error?.message
    }
}

/// What a reader of a subscription is told.
public enum SubscriptionEvent: Sendable {
    /// An event of the server's, which the cache has by now. Its `errors` are what the server reported beside the data.
    case data(Response)
    /// The subscription has this state from now on.
    case state(SubscriptionState)
    /// The reader was too slow for so many events. The cache has them.
    case missed(Int)
}

/// The events of a subscription. The cache stores each event before a reader gets it.
///
/// The subscription lasts as long as this value, its copies and iterators do, whether anything reads it or not. The
/// sequence ends when the server ends the subscription, the partition is parked or the store closed; the last state says
/// why. All iterators share one sequence.
public struct Subscription: AsyncSequence, Sendable {
    /// Ends the subscription with its last reference.
    final class Lease: Sendable {
        let events: SubscriptionEvents
        let hub: SubscriptionHub

        init(_ events: SubscriptionEvents, _ hub: SubscriptionHub) {
            self.events = events
            self.hub = hub
        }

        deinit {
            events.end()
            Task { [hub] in await hub.removeEnded() }
        }
    }

    let lease: Lease

    /// Where the subscription stands now.
    public var state: SubscriptionState { lease.events.state }

    /// Tells the subscription that the program has fetched what was missed: `staleSince` ends, unless another gap began
    /// meanwhile. Only where the options name nothing that catches up.
    ///
    /// - Parameter state: The state as the program saw it before it fetched.
    public func noteCaughtUp(since state: SubscriptionState) async {
        await lease.hub.noteCaughtUp(lease.events, since: state)
    }

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(lease: lease) }

    /// One reader's place.
    public struct Iterator: AsyncIteratorProtocol {
        let lease: Lease

        /// The next event; nil when the subscription has ended, or the task is cancelled.
        public mutating func next() async -> SubscriptionEvent? { await lease.events.next() }

        /// As `next()`, for a reader that is an actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SubscriptionEvent? {
            await lease.events.next()
        }
    }
}
