#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A value that threads look at all the time, and that is seldom replaced.
///
/// Some copies of it lie apart, each behind a lock of its own, and a thread always looks at the same one: threads that
/// look at the same time seldom wait for each other, and their processors for each other's caches.
///
/// Safe: it owns the copies, which stay where they are for as long as it does.
@safe @usableFromInline
package struct ReadMostly<Value: Sendable>: ~Copyable, @unchecked Sendable {
    @usableFromInline static var count: Int { 8 }

    @usableFromInline let copies: UnsafeMutablePointer<Locked<Value>>

    @inlinable package init(_ value: Value) {
        unsafe copies = .allocate(capacity: Self.count)
        for index in 0..<Self.count { unsafe (copies + index).initialize(to: Locked(value)) }
    }

    @inlinable deinit {
        unsafe copies.deinitialize(count: Self.count)
        unsafe copies.deallocate()
    }

    /// The value; for some moments while it is replaced, the one before.
    @inlinable package var value: Value { unsafe copies[Self.ofThisThread].withLock { $0 } }

    /// Puts another one in its place. Once it returns, every thread finds it.
    @inlinable package borrowing func replace(with value: Value) {
        for index in 0..<Self.count { unsafe copies[index].withLock { $0 = value } }
    }

    /// Threads have their own descriptors, which lie some pages apart.
    @usableFromInline static var ofThisThread: Int {
        #if canImport(Glibc)
        let descriptor = UInt64(pthread_self())
        #else
        let descriptor = UInt64(UInt(bitPattern: pthread_self()))
        #endif
        return Int((descriptor >> 12 &* 0x9E37_79B9_7F4A_7C15) >> 61)
    }
}
