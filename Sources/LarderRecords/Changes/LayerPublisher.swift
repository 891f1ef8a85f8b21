import Dispatch
import LarderFiles

/// Tells the observers what optimistic layers make different since they were told last: the mutation of a layer has
/// become known, what the layers lie over has changed, or there are other layers.
///
/// Many layers take long to work out. Then it is done less often after commits, so that it takes half of the writer's
/// time at most.
final class LayerPublisher: Sendable {
    private struct Pause {
        var end = SuspendingClock.now
        var isScheduled = false
    }

    private let thread: DispatchQueue
    private let layers: LayerStack
    private let generations: Generations
    private let observers: CommitObservers
    private let pause = Locked(Pause())
    /// Less than this needs no pause.
    private static let shortTime = Duration.milliseconds(2)

    /// - Parameter thread: The writer's.
    init(on thread: DispatchQueue, _ layers: LayerStack, over generations: Generations, _ observers: CommitObservers) {
        self.thread = thread
        self.layers = layers
        self.generations = generations
        self.observers = observers
    }

    /// To be called after each commit, on the writer's thread.
    func tell() {
        guard observers.areHeard else { return layers.nobodyListens() }
        let now = SuspendingClock.now
        let (isDue, isScheduled) = pause.withLock { pause in
            guard pause.end > now else { return (true, false) }
            defer { pause.isScheduled = true }
            return (false, pause.isScheduled)
        }
        guard isDue else {
            if !isScheduled { tellLater() }
            return
        }
        if let commit = layers.untold(of: generations) { observers.tell(commit) }
        let time = SuspendingClock.now - now
        if time > Self.shortTime { pause.withLock { $0.end = .now + time } }
    }

    private func tellLater() {
        let wait = pause.withLock { SuspendingClock.now.duration(to: $0.end) }.components
        let nanoseconds = max(wait.seconds, 0) * 1_000_000_000 + wait.attoseconds / 1_000_000_000
        thread.asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds))) { [weak self] in
            guard let self else { return }
            pause.withLock { $0.isScheduled = false }
            tell()
        }
    }

    /// To be called once other layers were set. What to tell is worked out at once, so that nothing reads the cache
    /// after this returns.
    func layersWereSet() {
        guard observers.areHeard else { return layers.nobodyListens() }
        if let commit = layers.untold(of: generations) { observers.tellSoon { [commit] } }
    }
}
