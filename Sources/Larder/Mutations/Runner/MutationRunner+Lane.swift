import Foundation
import LarderOperations

/// Takes the mutations of a lane through their steps, one after the other. What is on disk after each, and what a crash
/// there leads to:
///
/// | step | on disk | after a crash |
/// | --- | --- | --- |
/// | begin | in flight, with its owner | sent again with the same key, asked about, or set aside: `recover` |
/// | answer | acknowledged, with the answer; temporary ids replaced everywhere | stored by `recover` |
/// | store | the records, with the key among the applied | settled by `recover`, and not stored again |
/// | settle | the outcome alone | nothing left to do |
///
/// An attempt reports how it ended. `consequence` decides what follows, with the ends of all lanes' attempts at hand,
/// and the `AttemptRunner` carries it out.
extension MutationRunner {
    /// Ends the attempts that were under way when the runner before this one died.
    func recover(_ attempts: AttemptRunner) async throws {
        let queue = attempts.queue
        let unapplied = MutationFilter(partition: core.name, states: [.acknowledged])
        try await attempts.store(try queue.list(unapplied, isStrict: true).map { NotedAnswer(mutation: $0) })
        for mutation in try queue.recover(in: core.name, isAlive: { $0 == attempts.owner }) {
            guard let before = mutation.owner else { continue }
            try await queue.adopt(mutation.attempt, from: before, to: attempts.owner, now: core.now())
            let failure = MutationFailure(
                .outcomeUnknown, message: "The process that sent it ended before the answer", time: core.now())
            let end = AttemptEnd(.unknown(.lost), failure)
            let consequence = await consequence(of: end, for: mutation, sentIn: nil, attempts)
            _ = try await attempts.carryOut(consequence, for: mutation, goingOn: nil)
        }
        try await core.prune(queue)
    }

    // MARK: One lane

    /// After so many mutations a lane is left where the runner `wantsLanes`, and has to be looked for again.
    private static let longestTurn = 100

    /// Sends the head of a lane, and the mutations after it for as long as each is answered.
    func send(_ head: Runnable.Head, _ attempts: AttemptRunner) async throws {
        let requests = attempts.requests()
        var next = try await attempts.begin(head.id)
        var count = 0
        // A mutation that has begun is sent also where another lane has failed: it would be found in flight.
        while let mutation = next {
            options.reached(.begun)
            let turn = turn
            let end = isCancelled ? AttemptEnd(stoppedAt: core.now()) : await attempts.send(mutation, requests)
            options.reached(.received)
            count += 1
            note(end, sentIn: turn)
            let consequence = await consequence(of: end, for: mutation, sentIn: turn, attempts)
            if !consequence.isRetry { forgetFaults(of: mutation.id) }
            let isToGoOn = goesOn && (count < Self.longestTurn || !wantsLanes)
            next = try await attempts.carryOut(consequence, for: mutation, goingOn: isToGoOn ? requests : nil)
        }
    }
}
