import NIOCore
import Testing

@testable import LarderAWS

@Suite("Buffers that a body leaves to the next one")
struct BufferPoolTests {
    private static let size = 1 << 20

    /// Does with a ring what a body does.
    private func useOnce(_ pool: BufferPool) {
        var ring = pool.take()
        for _ in 0..<2 { ring.keep(ByteBufferAllocator().buffer(capacity: Self.size)) }
        pool.put(ring)
    }

    /// Whether the next body finds a buffer that was used.
    private func findsBuffer(_ pool: BufferPool) -> Bool {
        var ring = pool.take()
        defer { pool.put(ring) }
        return ring.take(capacity: 1).capacity >= Self.size
    }

    @Test("A pool keeps a body's buffers while another body is under way, and lets go of all after the last")
    func kept() {
        let pool = BufferPool()
        useOnce(pool)
        #expect(!findsBuffer(pool))
        let other = pool.take()
        useOnce(pool)
        #expect(findsBuffer(pool))
        pool.put(other)
    }
}
