import LarderFiles
import NIOCore

/// Rings of buffers that one body uses after the other. Memory that is made anew for each chunk costs the kernel a
/// fifth of what the whole way to the socket does.
final class BufferPool: Sendable {
    private struct State {
        var rings: [BufferRing] = []
        var users = 0
    }

    private let state = Locked(State())

    /// A ring for one body, to be given back by `put`.
    func take() -> BufferRing {
        state.withLock { state in
            state.users += 1
            return state.rings.popLast() ?? BufferRing()
        }
    }

    /// Keeps a ring for the next body, until there is none under way any more.
    func put(_ ring: BufferRing) {
        state.withLock { state in
            state.users -= 1
            if state.users > 0 { state.rings.append(ring) } else { state.rings = [] }
        }
    }
}
