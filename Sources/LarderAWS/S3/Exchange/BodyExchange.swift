import AsyncHTTPClient
import Larder
import LarderFiles
import NIOCore
import NIOHTTP1

/// One request whose body is sent piece by piece, and its answer.
///
/// It speaks to the client by what that calls a delegate, since only so bytes can go from a file to the socket without
/// coming by here (`IOData.fileRegion`). A piece is given to the client when the socket has taken the one before: the
/// client's own word for "wait" comes too late to bound what is in memory, and a promise that it makes for a piece
/// which comes after that word is never kept where the exchange fails.
final class BodyExchange: HTTPClientResponseDelegate {
    typealias Response = Void

    private struct State {
        /// The promise to keep when the socket has taken so many pieces.
        var sending: (promise: EventLoopPromise<Void>, left: Int, isLast: Bool)?
        var isOpened = false
        var isSent = false
        var visits = 0
        var answer: S3Answer?
        var isOver = false
        /// The client's task, and what takes pieces for it. Both keep this exchange, which is the client's delegate: so
        /// they are let go of when the exchange is over.
        var task: HTTPClient.Task<Void>?
        var writer: HTTPClient.Body.StreamWriter?

        /// - Returns: The answer, unless it was taken before, and the client's task.
        mutating func end() -> (S3Answer?, HTTPClient.Task<Void>?) {
            defer { (isOver, answer, task, writer) = (true, nil, nil, nil) }
            return (isOver ? nil : answer, task)
        }
    }

    /// How long the content of an answer is waited for that came before all was sent.
    private static let refusalTime = TimeAmount.seconds(1)

    private let client: HTTPClient
    private let loop: any EventLoop
    private let largestAnswer: Int
    private let clock: ExchangeClock
    private let opened: EventLoopPromise<Void>
    private let finished: EventLoopPromise<Void>
    private let answered: EventLoopPromise<S3Answer>
    private let state: Locked<State>

    /// - Parameter largestAnswer: In bytes; the exchange fails by a longer one.
    init(_ client: HTTPClient, largestAnswer: Int, clock: ExchangeClock) {
        self.client = client
        self.largestAnswer = largestAnswer
        self.clock = clock
        loop = client.eventLoopGroup.any()
        opened = loop.makePromise()
        finished = loop.makePromise()
        answered = loop.makePromise()
        state = Locked(State())
    }

    // MARK: Asking

    /// Sends the head. The body is sent by `send`, where it is not empty.
    ///
    /// - Returns: The answer. Throws what the client does where there is none.
    func run(_ request: HTTPClientRequest, length: Int64) async throws -> S3Answer {
        var body: HTTPClient.Body?
        if length > 0 {
            body = .stream(contentLength: length) { writer in
                let isOpenedAgain = self.state.withLock { state in
                    defer { state.isOpened = true }
                    if !state.isOver { state.writer = writer }
                    return state.isOpened
                }
                if isOpenedAgain { self.fail(ObjectError.redirectFollowed(status: nil)) }
                self.opened.succeed(())
                return self.finished.futureResult
            }
        } else {
            state.withLock { $0.isSent = true }
        }
        do {
            let request = try HTTPClient.Request(
                url: request.url, method: request.method, headers: request.headers, body: body)
            let task = client.execute(
                request: request, delegate: self, eventLoop: .delegate(on: loop), deadline: nil)
            // Not all that ends it is told to a delegate.
            task.futureResult.whenFailure { self.fail($0) }
            let isOver = state.withLock { state in
                if !state.isOver { state.task = task }
                return state.isOver
            }
            if isOver { task.cancel() }
        } catch {
            fail(error)
        }
        return try await withTaskCancellationHandler {
            try await answered.futureResult.get()
        } onCancel: {
            fail(CancellationError())
        }
    }

    /// Ends the exchange, if it has not ended.
    func fail(_ error: any Error) {
        let (answer, task) = state.withLock { $0.end() }
        // A refusal says more than how the connection ended after it.
        if let answer, answer.status >= 300 { answered.succeed(answer) } else { answered.fail(error) }
        end()
        task?.cancel()
    }

    /// Ends the exchange, so that no caller waits for it any more.
    private func end() {
        let sending = state.withLock { state in
            state.isOver = true
            defer { state.sending = nil }
            return state.sending
        }
        sending?.promise.fail(ObjectError.exchangeCancelled)
        opened.fail(ObjectError.exchangeCancelled)
        finished.fail(ObjectError.exchangeCancelled)
    }

    // MARK: Sending

    /// Gives pieces to the client, and returns what is there when the socket has taken them. All but the last of them
    /// are small.
    func send(_ pieces: [IOData], isLast: Bool) -> EventLoopFuture<Void> {
        opened.futureResult.flatMap {
            let promise = self.loop.makePromise(of: Void.self)
            let (writer, isAnswered) = self.state.withLock { state in
                if !state.isOver { state.sending = (promise, pieces.count, isLast) }
                return (state.writer, state.answer != nil)
            }
            if writer == nil { promise.fail(ObjectError.exchangeCancelled) }
            // The rest of an answer that came too early is waited for, and nothing more is sent.
            guard let writer, !isAnswered else { return promise.futureResult }
            // What these return is kept at once, or never: see above.
            for piece in pieces { _ = writer.write(piece) }
            return promise.futureResult
        }.flatMap {
            // When every loop has come by here, the client knows that there is room again.
            EventLoopFuture.andAllSucceed(
                self.client.eventLoopGroup.makeIterator().map { $0.submit {} }, on: self.loop)
        }
    }

    func didSendRequestPart(task: HTTPClient.Task<Void>, _ part: IOData) {
        let (promise, isWhole) = state.withLock { state -> (EventLoopPromise<Void>?, Bool) in
            guard var sending = state.sending else { return (nil, false) }
            sending.left -= 1
            state.sending = sending.left > 0 ? sending : nil
            guard sending.left <= 0 else { return (nil, false) }
            state.isSent = sending.isLast
            return (sending.promise, sending.isLast)
        }
        clock.moved()
        if isWhole { finished.succeed(()) }
        promise?.succeed(())
    }

    // MARK: The answer

    func didVisitURL(task: HTTPClient.Task<Void>, _ request: HTTPClient.Request, _ head: HTTPResponseHead) {
        state.withLock { $0.visits += 1 }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        clock.moved()
        let (isEarly, visits) = state.withLock { state in
            if !state.isOver { state.answer = S3Answer(status: Int(head.status.code), headers: head.headers, body: []) }
            return (!state.isSent, state.visits)
        }
        if visits > 1 { fail(ObjectError.redirectFollowed(status: Int(head.status.code))) }
        // The client does not say where an answer ends that came too early.
        if isEarly { loop.scheduleTask(in: Self.refusalTime) { self.succeed() } }
        succeedIfWhole()
        return loop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ part: ByteBuffer) -> EventLoopFuture<Void> {
        // The answer's bytes do not keep the exchange alive: they could come one by one.
        let isTooLong = state.withLock { state in
            state.answer?.body += part.readableBytesView
            return state.answer.map { $0.body.count > largestAnswer } ?? false
        }
        if isTooLong {
            return loop.makeFailedFuture(
                ObjectError(.unusableAnswer, "The answer is longer than the \(largestAnswer) bytes allowed."))
        }
        succeedIfWhole()
        return loop.makeSucceededVoidFuture()
    }

    func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) { fail(error) }

    func didFinishRequest(task: HTTPClient.Task<Void>) { succeed() }

    /// Takes an answer that came too early as soon as it is there.
    private func succeedIfWhole() {
        let isWhole = state.withLock { state in
            guard !state.isSent, let answer = state.answer else { return false }
            if answer.status < 300 { return true }
            return answer.headers.first(name: "content-length").flatMap { Int($0) }.map { answer.body.count >= $0 }
                ?? false
        }
        if isWhole { succeed() }
    }

    private func succeed() {
        let (answer, task, isSent) = state.withLock { state in
            let (answer, task) = state.end()
            return (answer, task, state.isSent)
        }
        if let answer { answered.succeed(answer) }
        end()
        // The rest is of no use.
        if !isSent { task?.cancel() }
    }
}

extension ObjectError {
    /// The client went elsewhere, where no signature is good.
    static func redirectFollowed(status: Int?) -> ObjectError {
        ObjectError(
            .unusableAnswer,
            "The HTTP client followed a redirect, for which nothing was signed; give it a configuration that disallows "
                + "redirects.",
            status: status)
    }
}
