import Larder
import RecipeServer

extension Story {
    func queueAndDie() async throws {
        printout.step(11, "A change while the server is gone, by a process that is killed")
        let title = titles(try cookbook())[KilledSender.id] ?? "none"
        let before = try ratings()
        let received = server.mutationCount
        try store.close()
        let said = try await KilledChild.runAndKill(
            .sender, store: folder, server: server.url, claims: claims
        ) { $0.lastNumber != nil }
        try claims.expect("the process saw its own change", said.lastNumber, is: Int(before) + 1)

        let opening = try await timed { try open() }
        let waiting = try claims.require("the mutation is there", try app.mutations().first)
        try claims.expect("it is the only one", try app.mutations().count, is: 1)
        try claims.expect("it is yet to be sent", waiting.state, is: .pending)
        let failure = try claims.require("it is known why it was not sent", waiting.failure)
        try claims.expect("there was no server", failure.kind, is: .offline)
        let card = Observed(try app.watch(KilledSender.key, Questions.card))
        let seen = try await card.first("a watcher has its data at once") { $0.complete != nil }
        try claims.expect("it is seen", seen.state.complete?["ratingCount"]?.int, is: before + 1)
        try claims.expect("as what is hoped for", seen.state.isOptimistic, is: true)
        try claims.expect("the server has not heard of it", server.mutationCount, is: received)

        printout.say(
            "another process gives \(KilledSender.key) (\"\(title)\") \(KilledSender.stars) stars, finds no server, "
                + "and gets SIGKILL")
        printout.fact("ratings, as that process read them", "\(before) -> \(before + 1)")
        printout.fact("opening after its death", opening.duration)
        printout.fact(
            "the mutation", "\(waiting.state), tried in vain: \(failure.code?.rawValue ?? failure.kind.rawValue)")
        printout.fact("ratings, told to a watcher here", "\(before + 1), optimistic")
    }

    func dieBeforeAnswer() async throws {
        printout.step(12, "The server returns, and the sender is killed at the worst moment")
        let (received, effects) = (server.mutationCount, server.effectCount)
        try store.close()
        // The answer is on its way for as long as it takes to kill the process that waits for it.
        server.latency = patience
        try await server.startAgain()
        _ = try await KilledChild.runAndKill(.sender, store: folder, server: server.url, claims: claims) { _ in
            server.effectCount > effects
        }
        server.latency = options.latency

        try open()
        let lost = try claims.require("the mutation is there", try app.mutations().first)
        try claims.expect("nobody has noted an answer", lost.state, is: .inFlight)
        try claims.expect("the server has received it", server.mutationCount, is: received + 1)
        try claims.expect("and has carried it out", server.effectCount, is: effects + 1)

        printout.say(
            "a new process finds the mutation and sends it; SIGKILL comes after the server has carried it out and "
                + "before the answer is there")
        printout.fact("the server received it", times(server.mutationCount - received))
        printout.fact("the server carried it out", times(server.effectCount - effects))
        printout.fact("the mutation on disk, nobody knows of an answer", "\(lost.state)")
        unanswered = Unanswered(id: lost.id, received: received, effects: effects)
    }

    func takeEffectOnce() async throws {
        printout.step(13, "Started once more, it takes effect once")
        let unanswered = try claims.require("a mutation waits for its answer", self.unanswered)
        let hoped = try ratings()
        let sending = try await timed { try await MutationRunner(app).drain() }
        let (received, effects) = (server.mutationCount, server.effectCount)
        try claims.expect("it was received twice", received, is: unanswered.received + 2)
        try claims.expect("it took effect once", effects, is: unanswered.effects + 1)
        let status = try app.mutation(unanswered.id).status()
        try claims.expect("it is known to have taken effect", status?.state, is: .applied)
        try claims.expect("nothing is left to be sent", try app.hasUnsentMutations(), is: false)
        let card = Observed(try app.watch(KilledSender.key, Questions.card))
        let seen = try await card.first("a watcher has its data at once") { $0.complete != nil }
        let count = seen.state.complete?["ratingCount"]?.int
        try claims.expect("what was hoped for is so", count, is: hoped)
        try claims.expect("as the server's word", seen.state.isOptimistic, is: false)
        let fetched = try await app.fetch(Questions.ratings(KilledSender.id), policy: .networkOnly)
        try claims.expect("the server says the same", fetched["recipe"]?["ratingCount"]?.int, is: count)

        printout.say("this process sends it again, under the key by which the server tells a repeat")
        printout.fact("sent, answered and settled after", sending.duration)
        printout.fact("the server received it", times(received - unanswered.received))
        printout.fact("the server carried it out", times(effects - unanswered.effects))
        printout.fact("the mutation", "\(MutationStatus.State.applied)")
        printout.fact("ratings, on disk and on the server", "\(hoped), no longer optimistic")
    }

    func beRejected() async throws {
        printout.step(14, "What the server refuses is taken back, and kept")
        let before = try ratings()
        let effects = server.effectCount
        let tooMany: Int64 = 6
        let stars: Int64 = 4
        let card = Observed(try app.watch(KilledSender.key, Questions.card))
        _ = try await card.first("a watcher has its data at once") { $0.complete != nil }
        let rating = try ExpectedRating(of: KilledSender.id, in: app, with: tooMany)
        let start = SuspendingClock.now
        let receipt = try await app.enqueue(
            Questions.rate(KilledSender.id, stars: tooMany),
            options: MutationOptions(optimisticResponse: rating.response))
        let returned = SuspendingClock.now
        let hoped = try await card.first("the watcher sees it before the server does", after: 1) { $0.isOptimistic }
        try claims.expect(
            "it sees one rating more", hoped.state.complete?["ratingCount"]?.int, is: before + 1)

        try await MutationRunner(app).drain()
        let back = try await card.first("the watcher sees it taken back", after: 2) { !$0.isOptimistic }
        try claims.expect("all is as before", back.state.complete?["ratingCount"]?.int, is: before)
        try claims.expect("the server has changed nothing", server.effectCount, is: effects)
        let letters = try app.mutations(in: [.deadLetter])
        try claims.expect("it is set aside, and nothing else is", letters.map(\.id), is: [receipt.id])
        let failure = try claims.require("the reason is there", letters.first?.failure)
        try claims.expect("the reason is the server's refusal", failure.kind, is: .rejected)
        printout.say("\(tooMany) stars are queued for \(KilledSender.key)")
        printout.fact("durable after", start.duration(to: returned))
        printout.fact("a watcher has seen it after", start.duration(to: hoped.time))
        printout.fact("ratings, as it was told", "\(before) -> \(before + 1) -> \(before)")
        printout.fact(
            "set aside as a dead letter",
            "\(failure.kind.rawValue): \(failure.serverCode ?? failure.code?.rawValue ?? "no code")")
        printout.say("\"\(failure.message)\"")

        try await app.editMutation(receipt.id, variables: Questions.rate(KilledSender.id, stars: stars).variables)
        try await app.replayMutation(receipt.id)
        try await MutationRunner(app).drain()
        try claims.expect("it took effect once", server.effectCount, is: effects + 1)
        try claims.expect("it is settled", try receipt.status()?.state, is: .applied)
        try claims.expect("there is one rating more", try ratings(), is: before + 1)
        printout.say("it is edited to \(stars) stars, and sent again")
        printout.fact("the server carried it out", times(server.effectCount - effects))
        printout.fact("ratings", "\(before) -> \(before + 1)")
    }

    private func ratings() throws -> Int64 {
        try claims.require(
            "the recipe has a count of ratings", try app.read(KilledSender.key, Questions.card)["ratingCount"]?.int)
    }

    private func times(_ count: Int) -> String { count == 1 ? "once" : count == 2 ? "twice" : "\(count) times" }
}
