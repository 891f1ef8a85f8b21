/// Bytes that are appended one after the other, in memory that is kept when they are forgotten.
///
/// A commit encodes as much as it changes, and the memory for that is the greater part of the work when it has to be
/// got from the system each time: so one buffer goes from commit to commit.
///
/// Safe: the memory is its own. What is appended lies elsewhere, which an assertion checks, and so stays where it is
/// while this grows; what `bytes` gives is used no longer than until then.
final class ByteBuffer {
    // Checking at run time that accesses do not overlap took a tenth of encoding a record. They cannot overlap: nothing
    // that a method calls while it changes one of the two knows of this buffer.
    @exclusivity(unchecked) private var memory = FlatBuffer<UInt8>()
    @exclusivity(unchecked) private var used = 0

    var count: Int { unsafe used }

    /// Valid until the next change.
    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(memory[0..<used]) }

    /// Forgets the bytes. Keeps the memory, unless it is more than `limit` bytes.
    func removeAll(keeping limit: Int = .max) {
        unsafe used = 0
        if unsafe memory.count > limit { unsafe memory = FlatBuffer() }
    }

    /// Makes room for `size` more bytes at the end, which the caller writes, and answers where.
    @inline(__always)
    private func extend(by size: Int) -> Int {
        let place = count
        if unsafe place + size > memory.count { grow(to: place + size) }
        unsafe used = place + size
        return place
    }

    /// - Precondition: the bytes are not this buffer's own, which move when it grows.
    @inline(__always)
    func append(_ source: UnsafeRawBufferPointer) {
        assert(unsafe !isOwn(source), "a buffer cannot append its own bytes")
        let place = extend(by: source.count)
        unsafe memory.copy(source, to: place)
    }

    private func isOwn(_ source: UnsafeRawBufferPointer) -> Bool {
        let own = unsafe UnsafeRawBufferPointer(memory.elements)
        guard let start = source.baseAddress, let first = own.baseAddress else { return false }
        return unsafe start < first + own.count && first < start + source.count
    }

    @inline(__always)
    func append<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number) {
        let place = extend(by: MemoryLayout<Number>.size)
        unsafe memory.store(number.littleEndian, at: place)
    }

    @inline(__always)
    func appendZeros(_ size: Int) {
        let place = extend(by: size)
        unsafe memory.clear(place..<(place + size))
    }

    /// - Precondition: the four bytes at `place` have been appended.
    @inline(__always)
    func store(_ number: UInt32, at place: Int) {
        assert(place + 4 <= count)
        unsafe memory.store(number.littleEndian, at: place)
    }

    private func grow(to needed: Int) {
        let larger = unsafe max(needed, memory.count * 2, 4096)
        guard unsafe memory.resize(to: larger) else { FlatBuffer<UInt8>.endForWantOfMemory(larger) }
    }
}
