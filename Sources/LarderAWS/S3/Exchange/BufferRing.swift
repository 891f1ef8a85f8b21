import NIOCore

/// Buffers of one body that are used again when nothing reads them any more.
struct BufferRing {
    /// One is filled while the other is on its way into the socket.
    private static let count = 2

    private var buffers: [ByteBuffer] = []
    private var next = 0

    /// An empty buffer of so many bytes, to be given back by `keep` when it is full.
    mutating func take(capacity: Int) -> ByteBuffer {
        guard buffers.count == Self.count else { return ByteBufferAllocator().buffer(capacity: capacity) }
        var buffer = ByteBuffer()
        swap(&buffer, &buffers[next])
        // Where it is still read, another is made.
        buffer.clear(minimumCapacity: capacity)
        return buffer
    }

    /// Keeps a buffer that was taken, for after all others.
    mutating func keep(_ buffer: ByteBuffer) {
        guard buffers.count == Self.count else { return buffers.append(buffer) }
        buffers[next] = buffer
        next = (next + 1) % Self.count
    }
}
