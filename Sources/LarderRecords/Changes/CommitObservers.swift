import Dispatch
import LarderFiles

/// What a write did.
package struct Commit: Sendable {
    /// The generation whose numbers `changes` holds.
    package let generation: UInt64
    /// Empty where nothing was different.
    package let changes: ChangeSet
    package let position: ChangePosition
    /// What was known of the mutation already, where the write was made for one; then it changed nothing.
    package var earlier: AppliedEntry?
    /// Whether nothing was committed: what optimistic layers do to the answers is different. The position is the last
    /// commit's.
    package var isOfLayers = false
}

/// Who is told of commits.
struct Observer: Sendable {
    /// Whether it has listeners.
    let isListening: @Sendable () -> Bool
    let tell: @Sendable (Commit) -> Void
}

/// Tells what was committed, in the order of the commits: on the thread on which this process makes its own.
final class CommitObservers: Sendable {
    private let thread: DispatchQueue
    private let observers = Locked<[Observer]>([])
    /// The numbering of the generation that the observers were told of last.
    private let toldNumbering: Locked<UInt64>
    let others = OtherProcesses()

    /// - Parameters:
    ///   - thread: The writer's.
    ///   - numbering: Of the generation that the cache begins with.
    init(on thread: DispatchQueue, numbering: UInt64) {
        self.thread = thread
        toldNumbering = Locked(numbering)
    }

    func add(_ observer: Observer) { observers.withLock { $0.append(observer) } }

    /// Whether an observer has listeners.
    var areHeard: Bool { observers.withLock { $0 }.contains { $0.isListening() } }

    /// Tells of a commit of this process. On the writer's thread, in the order of the commits.
    func publish(_ commit: Commit) {
        guard !commit.changes.isEmpty else { return }
        others.committed(commit)
        if commit.changes.isEverything {
            toldNumbering.withLock { $0 = commit.generation }
        } else {
            tellIfRenumbered(commit.generation)
        }
        tell(commit)
    }

    /// Tells of what is no commit of this process. On the writer's thread.
    func tell(_ commit: Commit) {
        for observer in observers.withLock({ $0 }) { observer.tell(commit) }
    }

    /// The same from any thread, after what is being committed. `commits` runs on the writer's thread.
    func tellSoon(_ commits: @escaping @Sendable () -> [Commit]) {
        thread.async { for commit in commits() { self.tell(commit) } }
    }

    /// Tells that numbers mean something else now, where another process has cleared the cache: what the observers know
    /// of records is of no use any more, and commits from now on would not reach them by it.
    func entered(_ numbering: UInt64) {
        thread.async { self.tellIfRenumbered(numbering) }
    }

    private func tellIfRenumbered(_ numbering: UInt64) {
        let isNew = toldNumbering.withLock { told in
            defer { told = numbering }
            return told != numbering
        }
        guard isNew else { return }
        tell(Commit(generation: numbering, changes: .everything, position: ChangePosition(epoch: 0, number: 0)))
    }
}
