internal import Synchronization

/// Which files this process has open as environments, by device and inode.
///
/// LMDB forces this one process-wide register: opening a file twice in a process loses its locks at the first close.
enum OpenFiles {
    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    private static let openers = Mutex<[Identity: String]>([:])

    /// Claims a file until the registration goes away.
    static func register(_ identity: Identity, by opener: String, path: String) throws(LMDBError) -> Registration {
        let first: String? = openers.withLock { openers in
            if let first = openers[identity] { return first }
            openers[identity] = opener
            return nil
        }
        if let first {
            let advice = "Share that environment, or close it first."
            throw LMDBError(.alreadyOpen, "This process has the file open already, by \(first). \(advice)", path: path)
        }
        return Registration(identity: identity)
    }

    final class Registration: Sendable {
        private let identity: Identity
        private let isCancelled = Atomic<Bool>(false)

        fileprivate init(identity: Identity) { self.identity = identity }

        deinit { cancel() }

        /// Gives the file up, once: another may have claimed it since.
        func cancel() {
            guard isCancelled.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
                return
            }
            openers.withLock { _ = $0.removeValue(forKey: identity) }
        }
    }
}
