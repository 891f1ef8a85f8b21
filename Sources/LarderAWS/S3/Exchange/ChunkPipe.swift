import Larder
import NIOCore
import Synchronization

/// Hands the chunks of a body from the task that makes them to the HTTP client, one ahead of it.
///
/// The client reads a body in a task of its own, which outlives the exchange and knows nothing of its cancellation.
/// Through the pipe it gets at nothing of the caller's: the file is read, and leave is waited for, in the exchange.
///
/// The client's task gives chunks to an event loop and asks for more before that loop can say that the socket is full:
/// while processors are busy it would take a whole body into memory. So it gets a chunk when the loops have dealt with
/// the one before.
final class ChunkPipe: AsyncSequence, Sendable {
    typealias Element = ByteBuffer
    private typealias Reader = CheckedContinuation<Result<ByteBuffer?, ObjectError>, Never>
    private typealias Writer = CheckedContinuation<Bool, Never>

    private struct State {
        var waiting: ByteBuffer?
        var ending: Result<Void, ObjectError>?
        var isAbandoned = false
        var reader: Reader?
        var writer: Writer?
    }

    private let state = Mutex(State())
    private let loops: [any EventLoop]

    /// - Parameter loops: Those that the client may use.
    init(_ loops: any EventLoopGroup) { self.loops = Array(loops.makeIterator()) }

    /// Why the bytes could not be had, if that was so before the exchange was over.
    var failure: ObjectError? {
        state.withLock { state in if case .failure(let error) = state.ending { error } else { nil } }
    }

    /// Whether all chunks were given to the client.
    var isWhole: Bool {
        state.withLock { state in if case .success = state.ending { state.waiting == nil } else { false } }
    }

    /// Waits until there is room and gives a chunk; false when nobody wants it any more.
    ///
    /// What is said to be the last is the end at once: the storage may answer as soon as it has it.
    func write(_ chunk: ByteBuffer, isLast: Bool) async -> Bool {
        let hasRoom = await withCheckedContinuation { continuation in
            let answer: Bool? = state.withLock { state in
                if state.isAbandoned { return false }
                if state.waiting == nil { return true }
                state.writer = continuation
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
        guard hasRoom else { return false }
        // There is one writer, so that the room is still there.
        let reader = state.withLock { state -> Reader? in
            if isLast, !state.isAbandoned { state.ending = .success(()) }
            if state.reader == nil { state.waiting = chunk }
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: .success(chunk))
        return true
    }

    /// Says that this was all, or why there is no more. Only the first word counts, and none after `abandon`.
    func end(_ ending: Result<Void, ObjectError>) {
        let reader = state.withLock { state -> Reader? in
            guard state.ending == nil, !state.isAbandoned else { return nil }
            state.ending = ending
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: ending.map { nil })
    }

    /// Says that no more is wanted.
    func abandon() {
        let (reader, writer) = state.withLock { state in
            state.isAbandoned = true
            defer { (state.reader, state.writer, state.waiting) = (nil, nil, nil) }
            return (state.reader, state.writer)
        }
        writer?.resume(returning: false)
        reader?.resume(returning: .failure(.exchangeCancelled))
    }

    fileprivate func next() async throws -> ByteBuffer? {
        for loop in loops { try await loop.submit {}.get() }
        let result = await withCheckedContinuation { continuation in
            let (answer, writer) = state.withLock { state in read(&state, continuation) }
            writer?.resume(returning: true)
            if let answer { continuation.resume(returning: answer) }
        }
        return try result.get()
    }

    /// What a reader gets at once, and who can write then; the reader is kept where there is nothing yet.
    private func read(
        _ state: inout State, _ reader: Reader
    ) -> (Result<ByteBuffer?, ObjectError>?, Writer?) {
        if state.isAbandoned { return (.failure(.exchangeCancelled), nil) }
        if let chunk = state.waiting {
            defer { (state.waiting, state.writer) = (nil, nil) }
            return (.success(chunk), state.writer)
        }
        if let ending = state.ending { return (ending.map { nil }, nil) }
        state.reader = reader
        return (nil, nil)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let pipe: ChunkPipe
        mutating func next() async throws -> ByteBuffer? { try await pipe.next() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pipe: self) }
}
