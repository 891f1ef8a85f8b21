import AsyncHTTPClient
import Larder
import LarderFiles
import NIOCore

/// Whether the body of a request has left, which the client's errors do not tell: the same number of the system's may
/// come from connecting and from the middle of an exchange.
///
/// The client asks for the body once it has a connection, with TLS agreed, and has written the head. Without its body a
/// request is nothing that a server could act on. So until the body is given out the request can be withdrawn, and what
/// is withdrawn never leaves.
final class Departure: Sendable {
    private enum State { case held, left, withdrawn }

    private let state = Locked(State.held)

    /// Gives the body out.
    ///
    /// - Returns: False where the request was withdrawn before.
    func leave() -> Bool {
        state.withLock { state in
            if state == .held { state = .left }
            return state == .left
        }
    }

    /// Withdraws the request, unless its body has left.
    ///
    /// - Returns: How far the exchange had come.
    func withdraw() -> TransportError.Phase {
        state.withLock { state in
            if state == .held { state = .withdrawn }
            return state == .left ? .sending : .beforeSending
        }
    }

    /// The body, to be given out once.
    func body(_ bytes: ByteBuffer) -> HTTPClientRequest.Body {
        .stream(Bytes(departure: self, bytes: bytes), length: .known(Int64(bytes.readableBytes)))
    }

    private struct Bytes: AsyncSequence, Sendable {
        let departure: Departure
        let bytes: ByteBuffer

        struct AsyncIterator: AsyncIteratorProtocol {
            let departure: Departure
            var bytes: ByteBuffer?

            mutating func next() async throws -> ByteBuffer? {
                guard let bytes else { return nil }
                self.bytes = nil
                guard departure.leave() else { throw CancellationError() }
                return bytes
            }
        }

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(departure: departure, bytes: bytes) }
    }
}
