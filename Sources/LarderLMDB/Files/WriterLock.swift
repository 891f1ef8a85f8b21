internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The right to write, in this process and in all: taken before LMDB's own lock, which would wait for ever.
final class WriterLock: Sendable {
    private let descriptor: Int32
    private let path: String
    private let label: String
    private let isHeld = Atomic<Bool>(false)

    init(folder: String, label: String) throws(LMDBError) {
        path = folder + "/write.lock"
        self.label = label
        descriptor = try FileSystem.open(path, O_RDWR | O_CREAT)
    }

    deinit { close(descriptor) }

    func acquire(deadline: ContinuousClock.Instant) throws(LMDBError) {
        var pause: UInt32 = 50
        while true {
            if isHeld.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged {
                if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return }
                isHeld.store(false, ordering: .releasing)
            }
            guard ContinuousClock.now < deadline else {
                throw LMDBError(.lockTimedOut, "Another writer holds the lock.", path: path)
            }
            usleep(pause)
            pause = min(pause * 2, 10_000)
        }
    }

    func release() {
        _ = flock(descriptor, LOCK_UN)
        isHeld.store(false, ordering: .releasing)
    }
}
