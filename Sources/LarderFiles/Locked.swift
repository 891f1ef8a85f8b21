#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A value that one thread at a time may look into, guarded by a lock of the system's thread library.
///
/// Swift's `Mutex` inherits priorities on Linux: a waiting thread goes through the kernel, which hands the lock over
/// from thread to thread. Threads that read all the time then wait for each other's wake-ups. With this lock the
/// running thread takes it again, and the thread sanitizer sees it.
///
/// Unchecked: the value is touched only between locking and unlocking.
package struct Locked<Value>: ~Copyable, @unchecked Sendable {
    @usableFromInline let lock = ThreadLock()
    @usableFromInline let value: UnsafeMutablePointer<Value>

    @inlinable
    package init(_ value: sending Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    @inlinable
    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` while no other thread is in it. `body` must not come here again.
    @inlinable
    package borrowing func withLock<Result: ~Copyable, Failure>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value.pointee)
    }
}

/// The lock of a `Locked`, at a place where it stays.
@usableFromInline
struct ThreadLock: ~Copyable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    @usableFromInline
    init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        check(pthread_mutex_init(mutex, nil))
    }

    deinit {
        check(pthread_mutex_destroy(mutex))
        mutex.deallocate()
    }

    @usableFromInline
    borrowing func lock() { check(pthread_mutex_lock(mutex)) }

    @usableFromInline
    borrowing func unlock() { check(pthread_mutex_unlock(mutex)) }

    /// The calls fail only for a lock that is none, or that is destroyed while it is held.
    private borrowing func check(_ status: Int32) { precondition(status == 0, "A lock failed with \(status)") }
}
