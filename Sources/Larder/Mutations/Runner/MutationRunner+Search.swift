import Foundation
import LarderRecords
import Logging

// After an answer that is no GraphQL server's, the queue is kept from what gave it: a page to sign in to a network
// with, a wrong address, a proxy whose server is gone. A query that changes nothing tells when the server is there.

extension MutationRunner {
    /// Whether the server is to be looked for, and no task does so.
    func mustSearch() -> Bool { progress.withLock { $0.isServerInDoubt && $0.searches == 0 } }

    /// Sends the probe. Where no GraphQL server answers, nothing is sent there for a pause that
    /// grows.
    func findsServer(_ transport: any GraphQLTransport) async -> Bool {
        let turn = progress.withLock { progress in
            progress.searches += 1
            return progress.pause.turn
        }
        let search = await search(transport)
        let now = core.now()
        let wasMissing = progress.withLock { progress in
            progress.searches -= 1
            // A suspension has broken off the search: the server is looked for again.
            guard search.isFound || !Task.isCancelled else { return true }
            defer { progress.isServerMissing = !search.isFound }
            progress.isServerInDoubt = !search.isFound
            guard !search.isFound else { return progress.isServerMissing }
            progress.failedSearches += 1
            progress.pause.begin(at: now, inTurn: turn) { count in
                options.backoff.pause(after: count, asked: search.retryAfter, fraction: options.random())
            }
            return progress.isServerMissing
        }
        if let failure = search.failure, !Task.isCancelled {
            lifecycle.set(.unusableServer)
            if !wasMissing {
                core.logger.warning(
                    "no GraphQL server answers the probe; the queue waits", metadata: ["error": "\(failure)"])
            }
        }
        core.operationsStore.changeSignal.notify()
        return search.isFound
    }

    /// Whether the server was there all the time since an exchange was begun, as far as it was looked for. Otherwise
    /// what stood in its place may have given the answer.
    func hasServerStayed(since turn: Turn) -> Bool { progress.withLock { $0.failedSearches == turn.failedSearches } }

    private struct Search {
        /// Why none was found.
        var failure: String?
        var retryAfter: Duration?

        var isFound: Bool { failure == nil }
    }

    private func search(_ transport: any GraphQLTransport) async -> Search {
        do {
            let request = try core.request(
                options.probe, core.operations.bound(query: options.probe), headers: options.headers)
            let answer = try await core.send(request, by: transport, within: options.timeout)
            guard !answer.isGraphQLResponse else { return Search() }
            return Search(failure: "the answer is no GraphQL response", retryAfter: answer.retryAfter)
        } catch let error as TransportError {
            // A server that says so is one, and a mutation hears it as well.
            let effect = Evidence(
                phase: error.phase, status: error.status, answer: .status, refusals: transport.refusals
            ).verdict.effect
            switch effect {
            case .none(.throttled), .none(.notSignedIn), .conflict: return Search()
            default: return Search(failure: error.description, retryAfter: error.retryAfter)
            }
        } catch { return Search(failure: "\(error)") }
    }
}
