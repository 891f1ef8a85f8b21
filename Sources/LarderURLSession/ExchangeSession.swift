import Foundation
import Larder

#if canImport(FoundationNetworking)
import FoundationNetworking
import LarderFiles
#endif

/// A session without cookies, caches and stored passwords, and the exchanges that are under way on it.
final class ExchangeSession: Sendable {
    private let delegate = ExchangeDelegate()
    private let session: URLSession

    init() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// Begins an exchange, and returns once its head has come.
    ///
    /// - Parameter limit: Bytes of the body above which it is broken off.
    func exchange(_ request: URLRequest, limit: Int) async throws(TransportError) -> Exchange {
        let task = session.dataTask(with: request)
        let exchange = Exchange(task, limit: limit)
        delegate.add(exchange, of: task)
        task.resume()
        try await exchange.head()
        return exchange
    }

    /// Lets go of the system's session once its exchanges have ended.
    func end() { session.finishTasksAndInvalidate() }
}

/// Hands what the system tells to the exchange that it concerns.
private final class ExchangeDelegate: NSObject, URLSessionDataDelegate {
    private let exchanges = Locked<[Int: Exchange]>([:])

    func add(_ exchange: Exchange, of task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        exchanges.withLock { $0[dataTask.taskIdentifier] }?.take(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchanges.withLock { $0[dataTask.taskIdentifier] }?.take(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let exchange = exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        // Where there was no body, the system may tell of the head here alone.
        if let response = task.response { exchange?.take(response) }
        exchange?.end(error, bytesSent: task.countOfBytesSent)
    }
}

/// One request and its answer, as it comes.
final class Exchange: HTTPAnswer, Sendable {
    private struct State {
        var response: HTTPURLResponse?
        var bytes: [UInt8] = []
        var end: Result<Void, TransportError>?
        /// The caller, and whether it waits for more than the head.
        var waiter: (continuation: CheckedContinuation<Void, Never>, bytes: Int?)?

        /// Whether there is what the caller waits for.
        func isEnough(_ bytes: Int?) -> Bool {
            if end != nil { return true }
            guard let bytes else { return response != nil }
            return self.bytes.count > bytes
        }
    }

    private let state = Locked(State())
    private let task: URLSessionTask
    private let limit: Int

    init(_ task: URLSessionTask, limit: Int) {
        self.task = task
        self.limit = max(0, limit)
    }

    // MARK: What comes

    func take(_ response: URLResponse) {
        change { if $0.response == nil { $0.response = response as? HTTPURLResponse } }
    }

    func take(_ data: Data) {
        var isTooLong = false
        change { state in
            guard state.bytes.count <= limit else { return }
            // One byte more than is allowed says that there are more.
            state.bytes += data.prefix(limit + 1 - state.bytes.count)
            isTooLong = state.bytes.count > limit
        }
        if isTooLong { task.cancel() }
    }

    func end(_ error: (any Error)?, bytesSent: Int64) {
        change { state in
            guard state.end == nil else { return }
            if let error {
                state.end = .failure(TransportError(ofSession: error, bytesSent: bytesSent))
            } else {
                state.end = .success(())
            }
        }
    }

    private func change(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            change(&state)
            guard let waiter = state.waiter, state.isEnough(waiter.bytes) else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        waiting?.resume()
    }

    // MARK: What is waited for

    /// - Parameter bytes: How many are to be exceeded, where the whole body may be shorter; nil for the head.
    private func wait(past bytes: Int?) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.isEnough(bytes) { return true }
                    state.waiter = (continuation, bytes)
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            task.cancel()
        }
    }

    func head() async throws(TransportError) {
        await wait(past: nil)
        let (response, end) = state.withLock { ($0.response, $0.end) }
        if response != nil { return }
        if case .failure(let error)? = end { throw error }
        throw TransportError(.unusableAnswer, "What came back is not HTTP.", phase: .sending)
    }

    var statusCode: Int { state.withLock { $0.response?.statusCode ?? 0 } }
    var statusText: String { String(statusCode) }

    func headers(named name: String) -> [String] {
        state.withLock { $0.response?.value(forHTTPHeaderField: name).map { [$0] } ?? [] }
    }

    func body(upTo limit: Int) async throws(TransportError) -> (bytes: [UInt8], isWhole: Bool) {
        let limit = min(limit, self.limit)
        await wait(past: limit)
        let (bytes, end) = state.withLock { ($0.bytes, $0.end) }
        if bytes.count > limit {
            task.cancel()
            return (Array(bytes.prefix(limit)), false)
        }
        if case .failure(let error)? = end { throw error }
        return (bytes, true)
    }
}

extension TransportError {
    /// - Parameter bytesSent: Of the request's body, as far as the system knows.
    fileprivate init(ofSession error: any Error, bytesSent: Int64) {
        let code = (error as? URLError)?.code
        let meaning: (code: Code, message: String, isUnsent: Bool) =
            switch code {
            case .cancelled?:
                (.cancelled, "The exchange was cancelled.", false)
            case .cannotFindHost?, .dnsLookupFailed?:
                (.unreachable, "The server's name has no address.", true)
            case .cannotConnectToHost?:
                (
                    .unreachable,
                    "No connection to the server could be made; is it running, and is the network there?", true
                )
            case .notConnectedToInternet?, .dataNotAllowed?, .internationalRoamingOff?:
                (.unreachable, "There is no network.", true)
            case .serverCertificateUntrusted?, .serverCertificateHasBadDate?, .serverCertificateHasUnknownRoot?,
                .serverCertificateNotYetValid?:
                (.insecure, "The server's certificate is not trusted.", true)
            case .secureConnectionFailed?, .clientCertificateRejected?, .clientCertificateRequired?:
                (.insecure, "TLS could not be agreed with the server.", false)
            case .timedOut?:
                (.timedOut, "The server was silent for longer than the system waits.", false)
            case .cannotParseResponse?, .cannotDecodeContentData?, .cannotDecodeRawData?:
                (.unusableAnswer, "What came back is not HTTP, or its compression is damaged.", false)
            case .badURL?, .unsupportedURL?:
                (.unusableRequest, "The endpoint is not a URL that can be sent to.", true)
            // `badServerResponse` is an answer without a byte on Linux.
            default:
                (.interrupted, "The connection broke before the answer was whole.", false)
            }
        self.init(
            meaning.code, meaning.message,
            phase: meaning.isUnsent && bytesSent <= 0 ? .beforeSending : .sending, cause: error)
    }
}
