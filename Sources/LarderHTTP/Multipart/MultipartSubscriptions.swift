import AsyncHTTPClient
import Foundation
import Larder
import LarderFiles
import LarderRecords
import NIOCore

/// Subscriptions over plain HTTP, by Apollo's multipart protocol
/// (https://www.apollographql.com/docs/graphos/routing/operations/subscriptions/multipart-protocol): each is a request
/// whose answer does not end, and has a part for each event.
///
/// The protocol does not acknowledge a subscription. Servers send a heartbeat once it runs: the first part says that it
/// has begun.
struct MultipartSubscriptions: Sendable {
    static let accept = "multipart/mixed;subscriptionSpec=1.0, application/json"

    let transport: HTTPTransport
    let line: SubscriptionLine

    /// Carries the line's subscriptions until its commands end.
    func carry() async throws(TransportError) {
        await line.take(.opened)
        let (faults, telling) = AsyncStream.makeStream(of: TransportError.self)
        let commands = Task { await obey(telling) }
        let fault = await withTaskCancellationHandler {
            for await fault in faults { return fault as TransportError? }
            return nil
        } onCancel: {
            commands.cancel()
        }
        commands.cancel()
        await commands.value
        if let fault { throw fault }
    }

    /// Begins and ends subscriptions as the line's commands say, until there are no more; ends `faults` then.
    private func obey(_ faults: AsyncStream<TransportError>.Continuation) async {
        let running = RunningSubscriptions()
        for await together in line.commands {
            for command in together {
                switch command {
                case .start(let id, let request):
                    running.begin(id) {
                        do throws(TransportError) { try await follow(id, request) } catch { faults.yield(error) }
                    }
                case .stop(let id):
                    await running.end(id)
                    await line.take(.completed(id: id))
                }
            }
        }
        await running.endAll()
        faults.finish()
    }

    /// One subscription, from its request to the end of its answer.
    ///
    /// - Throws: What ends all subscriptions of the line.
    private func follow(_ id: String, _ request: GraphQLRequest) async throws(TransportError) {
        do throws(TransportError) {
            try await read(id, request)
        } catch {
            guard !Task.isCancelled else { return }
            switch error.code {
            case .notSignedIn, .unusableRequest, .notPrepared: throw error
            // The others go on.
            default: await line.take(.broken(id: id, error))
            }
        }
    }

    private func read(_ id: String, _ request: GraphQLRequest) async throws(TransportError) {
        let options = transport.options
        let deadline = SuspendingClock.now + options.subscriptions.pacing.opening
        let form = RequestForm(
            endpoint: options.subscriptions.url ?? transport.endpoint, request: request,
            headers: try await transport.headers(for: request, deadline: deadline), options: options,
            departure: Departure())
        var http = try form.httpRequest(.text)
        http.headers.replaceOrAdd(name: "Accept", value: Self.accept)
        try http.requireBoundedHead()
        let watch = SilenceWatch(options.subscriptions.pacing.opening)
        let (client, limit) = (transport.client, options.subscriptions.maximumMessageSize)
        let silence = options.subscriptions.silence
        let answer = Task { [http] in
            do {
                let response = try await client.execute(http, deadline: .now() + .hours(24 * 365))
                watch.expect(within: silence)
                try await take(response, id, limit, watch)
            } catch let error as TransportError {
                throw error
            } catch { throw TransportError(ofClient: error) }
        }
        let timer = Task {
            await watch.untilSilent()
            answer.cancel()
        }
        defer { timer.cancel() }
        let result = await withTaskCancellationHandler {
            await answer.result
        } onCancel: {
            answer.cancel()
        }
        if watch.isSilent {
            throw TransportError(.timedOut, "The server said nothing for as long as a subscription's answer may.")
        }
        do { try result.get() } catch { throw error as? TransportError ?? TransportError(ofClient: error) }
    }

    private func take(
        _ response: HTTPClientResponse, _ id: String, _ limit: Int, _ watch: SilenceWatch
    ) async throws {
        let status = Int(response.status.code)
        guard ![401, 403].contains(status) else {
            throw TransportError(
                .notSignedIn, "The server did not take the proof of who asks (\(status)).", status: status)
        }
        guard let type = response.headers.first(name: "Content-Type"), (200..<300).contains(status),
            let boundary = MultipartReader.boundary(of: type)
        else { return try await refuse(response, id, status, limit) }
        var reader = MultipartReader(boundary: boundary, limit: limit)
        var hasStarted = false
        for try await chunk in response.body {
            watch.noteHeard()
            for part in try reader.parts(in: chunk.readableBytesView) {
                if !hasStarted {
                    hasStarted = true
                    transport.noteChange()
                    await line.take(.started(id: id))
                }
                guard try await take(part, id) else { return }
            }
            if reader.isAtEnd { break }
        }
        guard !Task.isCancelled else { return }
        guard reader.isAtEnd else {
            throw TransportError(.interrupted, "The server's answer has ended without its last boundary.")
        }
        await line.take(.completed(id: id))
    }

    /// - Returns: False where the server has ended the subscription by it.
    private func take(_ part: [UInt8], _ id: String) async throws -> Bool {
        let members: JSONMembers
        do { members = try JSONMembers(part) } catch {
            throw TransportError(.unusableAnswer, "The server sent a part that is no JSON object.", cause: error)
        }
        guard let payload = members["payload"] else {
            await line.take(.alive)
            return true
        }
        guard payload == Array("null".utf8) else {
            await line.take(.event(id: id, response: payload))
            return true
        }
        // An error of the way to the data, and not of the operation.
        let errors = members["errors"] ?? Array("[]".utf8)
        await line.take(
            .failed(
                id: id, response: Array(#"{"errors":"#.utf8) + errors + Array("}".utf8), mayRecover: true))
        return false
    }

    /// An answer that is no stream: errors of the operation itself, or no GraphQL at all.
    private func refuse(_ response: HTTPClientResponse, _ id: String, _ status: Int, _ limit: Int) async throws {
        let body = try await response.body.collect(upTo: min(limit, 1 << 20))
        let bytes = Array(body.readableBytesView)
        guard let members = try? JSONMembers(bytes), members["errors"] != nil else {
            throw TransportError(
                .status, "The server did not answer with parts (\(status)); does it serve multipart subscriptions?",
                status: status)
        }
        await line.take(.failed(id: id, response: bytes, mayRecover: status >= 500))
    }
}

/// The tasks of subscriptions that have not ended, by the subscriptions' ids.
private final class RunningSubscriptions: Sendable {
    private let tasks = Locked<[String: Task<Void, Never>]>([:])

    func begin(_ id: String, _ body: @escaping @Sendable () async -> Void) {
        // Made under the lock, so that one which ends at once is kept before it is removed.
        tasks.withLock { tasks in
            tasks[id] = Task {
                await body()
                self.tasks.withLock { _ = $0.removeValue(forKey: id) }
            }
        }
    }

    func end(_ id: String) async {
        let task = tasks.withLock { $0.removeValue(forKey: id) }
        task?.cancel()
        await task?.value
    }

    func endAll() async {
        let left = tasks.withLock { Array($0.values) }
        for task in left { task.cancel() }
        for task in left { await task.value }
    }
}

/// How long an answer has been silent.
private final class SilenceWatch: Sendable {
    private struct State {
        var limit: Duration
        var heard = ContinuousClock.now
        var isSilent = false
        /// Ends when the answer has been silent for as long as the limit says.
        var wait: Task<Void, Never>?
    }

    private let state: Locked<State>

    init(_ limit: Duration) { state = Locked(State(limit: limit)) }

    func noteHeard() { state.withLock { $0.heard = .now } }

    func expect(within limit: Duration) {
        let wait = state.withLock { state in
            (state.limit, state.heard) = (limit, .now)
            return state.wait
        }
        // The new limit may end before this wait: `untilSilent` looks again.
        wait?.cancel()
    }

    var isSilent: Bool { state.withLock { $0.isSilent } }

    /// Waits until nothing was heard for too long, or the task is cancelled.
    func untilSilent() async {
        while !Task.isCancelled {
            let wait = state.withLock { state -> Task<Void, Never>? in
                let due = state.heard + state.limit
                guard due > .now else {
                    state.isSilent = true
                    return nil
                }
                // Begun under the lock, so that no change of the limit is missed.
                let wait = Task { _ = await CancellableTimer.waitThroughSleep(until: due) }
                state.wait = wait
                return wait
            }
            guard let wait else { return }
            await withTaskCancellationHandler {
                await wait.value
            } onCancel: {
                wait.cancel()
            }
        }
    }
}
