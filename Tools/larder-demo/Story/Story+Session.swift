import Larder
import RecipeServer

extension Story {
    /// A user who has signed out by mistake: what is asked is answered at once, and what is queued waits for the sign-in.
    func signInAgain() async throws {
        printout.step(18, "The sign-in ends, and the user signs in again")
        let effects = server.effectCount
        let session = try app.session
        let guarded = app.with(server: SignedInOnly(server: http, session: session))
        try await session.signOut(within: .seconds(5))

        let before = try cookbook()
        let (fallen, asking) = try await timed {
            try await guarded.fetch(Cookbook().operation, policy: .networkFirst)
        }
        try claims.expect("without a sign-in networkFirst is answered from the cache", fallen == before, else: "not")
        let error = try await claims.failure("networkOnly gives no answer") { () async throws(LarderError) in
            _ = try await guarded.fetch(Cookbook().operation, policy: .networkOnly)
        }
        try claims.expect("its error says that nobody is signed in", error.code.rawValue, is: "transport.notSignedIn")

        let watch = try guarded.watch(Cookbook().operation, policy: .networkFirst)
        let states = Observed(watch)
        _ = try await states.first("a watch has data and an error") { $0.error != nil && $0.complete != nil }
        let queue = Observed(guarded.queue)
        _ = try await guarded.enqueue(Questions.rate(KilledSender.id, stars: 4))
        let runner = MutationRunner(guarded)
        let running = Task { try await runner.run() }
        _ = try await queue.first("the queue says that it waits for a sign-in") {
            $0.runner == .waitingForSignIn && $0.unsentCount == 1
        }
        let statesBefore = queue.count
        let signing = try await timed {
            _ = try await store.signIn(
                proof, as: Self.user, pending: .carry, within: .seconds(5), server: http)
            _ = try await queue.first("the runner goes on by itself, and the queue is empty", after: statesBefore) {
                $0.unsentCount == 0
            }
        }
        running.cancel()
        try await running.value
        try claims.expect("the rating took effect", server.effectCount, is: effects + 1)
        let seen = states.count
        watch.refetch()
        _ = try await states.first("a retried watch has no error any more", after: seen - 1) {
            $0.error == nil && !$0.isFetching
        }
        printout.fact("a fetch without a sign-in, answered from the cache", asking)
        printout.fact("networkOnly: a typed error", error.code.rawValue)
        printout.fact("from the sign-in to the queued rating at the server", signing.duration)
        printout.say("nobody called resume(); the watch that showed an error was retried by refetch()")
    }
}

/// Hands requests on to the server while a user is signed in, and refuses them otherwise.
private struct SignedInOnly: GraphQLTransport {
    let server: MeasuredTransport
    let session: Session

    var idempotency: Idempotency? { server.idempotency }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let deadline = SuspendingClock.now + time
        do throws(LarderError) { _ = try await session.userPoolTokens(within: .until(deadline)) } catch {
            throw TransportError(.notSignedIn, "Nobody is signed in", cause: error)
        }
        return try await server.send(request, within: .until(deadline))
    }
}
