#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Bytes that are appended one after the other, in memory that is kept when they are forgotten.
///
/// A commit encodes as much as it changes, and the memory for that is the greater part of the work when it has to be
/// got from the system each time: so one buffer goes from commit to commit.
final class ByteBuffer {
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    private(set) var count = 0

    deinit { free(base) }

    /// Valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// Forgets the bytes. Keeps the memory, unless it is more than `limit` bytes.
    func removeAll(keeping limit: Int = .max) {
        count = 0
        guard capacity > limit else { return }
        free(base)
        base = nil
        capacity = 0
    }

    /// Room for `size` more bytes at the end, which the caller writes.
    @inline(__always)
    private func extend(by size: Int) -> UnsafeMutableRawPointer {
        if count + size > capacity { grow(to: count + size) }
        defer { count += size }
        // After `grow` there is memory.
        return base.unsafelyUnwrapped + count
    }

    @inline(__always)
    func append(_ source: UnsafeRawBufferPointer) {
        guard let start = source.baseAddress, source.count > 0 else { return }
        memcpy(extend(by: source.count), start, source.count)
    }

    @inline(__always)
    func append<Number: FixedWidthInteger>(_ number: Number) {
        extend(by: MemoryLayout<Number>.size).storeBytes(of: number.littleEndian, as: Number.self)
    }

    @inline(__always)
    func appendZeros(_ size: Int) {
        guard size > 0 else { return }
        memset(extend(by: size), 0, size)
    }

    /// - Precondition: the four bytes at `place` have been appended.
    @inline(__always)
    func store(_ number: UInt32, at place: Int) {
        guard let base, place + 4 <= count else { return }
        base.storeBytes(of: number.littleEndian, toByteOffset: place, as: UInt32.self)
    }

    private func grow(to needed: Int) {
        let larger = max(needed, capacity * 2, 4096)
        // Swift's own collections end the process when memory is exhausted, and so does this.
        guard let moved = realloc(base, larger) else { fatalError("no memory for \(larger) bytes") }
        base = moved
        capacity = larger
    }
}
