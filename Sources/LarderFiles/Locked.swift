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
/// The lock and the value lie side by side: who takes the lock mostly gets the value with it.
///
/// Its functions can be inlined, so that each module has them for its own types of values. The compiler heeds `@inlinable`
/// in a package's type only where the type is `@usableFromInline` as well.
///
/// Unchecked: the value is touched only between locking and unlocking.
@usableFromInline
package struct Locked<Value>: ~Copyable, @unchecked Sendable {
    @usableFromInline let lock: ThreadLock
    @usableFromInline let value: UnsafeMutablePointer<Value>

    @inlinable
    package init(_ value: sending Value) {
        lock = ThreadLock(before: Value.self)
        self.value = lock.place(of: Value.self)
        self.value.initialize(to: value)
    }

    @inlinable
    deinit {
        value.deinitialize(count: 1)
        lock.end()
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

/// A handle to a lock at a place where it stays, with room behind it for what it guards. Copies are the same lock:
/// `Locked` alone calls `end`, once.
@usableFromInline
struct ThreadLock {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    @usableFromInline
    init<Value>(before type: Value.Type) {
        mutex = UnsafeMutableRawPointer.allocate(
            byteCount: Self.offset(of: type) + MemoryLayout<Value>.stride,
            alignment: max(MemoryLayout<pthread_mutex_t>.alignment, MemoryLayout<Value>.alignment)
        ).initializeMemory(as: pthread_mutex_t.self, to: pthread_mutex_t())
        #if canImport(Glibc)
        // A waiting thread looks again for a bounded time before it sleeps: most owners are done sooner than it would wake.
        var attributes = pthread_mutexattr_t()
        check(pthread_mutexattr_init(&attributes))
        check(pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP)))
        check(pthread_mutex_init(mutex, &attributes))
        check(pthread_mutexattr_destroy(&attributes))
        #else
        check(pthread_mutex_init(mutex, nil))
        #endif
    }

    /// Gives back the lock's memory, and that of what it guards.
    @usableFromInline
    func end() {
        check(pthread_mutex_destroy(mutex))
        UnsafeMutableRawPointer(mutex).deallocate()
    }

    private static func offset<Value>(of type: Value.Type) -> Int {
        let alignment = MemoryLayout<Value>.alignment
        return (MemoryLayout<pthread_mutex_t>.size + alignment - 1) / alignment * alignment
    }

    @usableFromInline
    func place<Value>(of type: Value.Type) -> UnsafeMutablePointer<Value> {
        (UnsafeMutableRawPointer(mutex) + Self.offset(of: type)).bindMemory(to: type, capacity: 1)
    }

    @usableFromInline
    func lock() { check(pthread_mutex_lock(mutex)) }

    @usableFromInline
    func unlock() { check(pthread_mutex_unlock(mutex)) }

    /// Making a lock fails where the system has no memory for it, and other calls only for a lock that is none, or that is
    /// destroyed while it is held.
    private func check(_ status: Int32) { precondition(status == 0, "A lock failed with \(status)") }
}
