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

extension Commit {
    /// Stands for commits whose changes are unknown: everything in the generation may be different. Its position is
    /// unknown too.
    fileprivate static func everything(of generation: UInt64) -> Commit {
        Commit(generation: generation, changes: .everything, position: ChangePosition(epoch: 0, number: 0))
    }
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
    let others = OtherProcesses()

    /// - Parameter thread: The writer's.
    init(on thread: DispatchQueue) { self.thread = thread }

    func add(_ observer: Observer) { observers.withLock { $0.append(observer) } }

    /// Whether an observer has listeners.
    var areHeard: Bool { observers.withLock { $0 }.contains { $0.isListening() } }

    /// Tells of a commit of this process. On the writer's thread, in the order of the commits.
    func publish(_ commit: Commit) {
        guard !commit.changes.isEmpty else { return }
        if others.committed(commit), !commit.changes.isEverything { tell(.everything(of: commit.generation)) }
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
    func entered(_ numbering: UInt64, _ generations: Generations) {
        tellSoon {
            // What cannot be read now is told at a later look, once more.
            do { return try self.others.look(generations) } catch { return [.everything(of: numbering)] }
        }
    }
}
