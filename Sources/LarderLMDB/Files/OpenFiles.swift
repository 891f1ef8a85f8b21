import LarderFiles
import Synchronization

/// Which files this process has open as environments, by device and inode.
///
/// LMDB forces this one process-wide register: opening a file twice in a process loses its locks at the first close.
enum OpenFiles {
    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    private struct Opener {
        var name: String
        /// Whether it has closed the file, and waits for its last transactions to end.
        var isLeaving = false
    }

    private static let openers = Locked<[Identity: Opener]>([:])

    /// Claims a file until the registration goes away.
    ///
    /// - Parameter deadline: Until when to wait for one that has closed the file and has transactions left.
    static func register(
        _ identity: Identity, by name: String, path: String, deadline: SuspendingClock.Instant
    ) throws(LMDBError) -> Registration {
        var first: Opener?
        _ = try poll(until: deadline) { () throws(LMDBError) -> Void? in
            first = openers.withLock { openers in
                if let first = openers[identity] { return first }
                openers[identity] = Opener(name: name)
                return nil
            }
            return first?.isLeaving == true ? nil : ()
        }
        if let first {
            let advice =
                first.isLeaving
                ? "It was closed, and a reader still has a snapshot." : "Share that environment, or close it first."
            throw LMDBError(
                .alreadyOpen, "This process has the file open already, by \(first.name). \(advice)", path: path)
        }
        return Registration(identity: identity)
    }

    final class Registration: Sendable {
        private let identity: Identity
        private let isCancelled = Atomic<Bool>(false)

        fileprivate init(identity: Identity) { self.identity = identity }

        deinit { cancel() }

        /// Says whether the file will be given up as soon as the last transaction has ended.
        func leave(_ isLeaving: Bool) {
            openers.withLock { openers in
                guard !isCancelled.load(ordering: .relaxed) else { return }
                openers[identity]?.isLeaving = isLeaving
            }
        }

        /// Gives the file up, once: another may have claimed it since.
        func cancel() {
            openers.withLock { openers in
                guard isCancelled.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
                    return
                }
                openers[identity] = nil
            }
        }
    }
}
