import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Suspending a store with requests under way or open streams", .timeLimit(.minutes(10)))
struct SuspendedWorkTests {
    @Test("A refresh that is under way keeps a suspension waiting until its new credentials are stored")
    func refresh() async throws {
        let identities = InMemoryIdentityProvider(lifetime: .zero)
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        options.identityProvider = { _ in identities }
        try await withOpenStore(options: options) { (_, store, app) throws in
            let issued = identities.signIn("ada")
            try await app.session.signIn(issued, within: soon)
            identities.behaviour = .hanging
            let asking = Task { try await app.session.credentials(within: soon) }
            try await eventually { identities.attempts == 1 }
            let isSuspended = Flag()
            let suspending = Task {
                try await store.suspend(within: .seconds(300))
                isSuspended.set()
            }
            try await eventually { store.suspension.isAsked }
            // Long enough for a suspension that does not wait, since no signal reports that nothing happens.
            try await Task.sleep(for: .milliseconds(100))
            #expect(!isSuspended.isSet)
            identities.behaviour = .ready
            try await suspending.value
            // The caller may be told that the store is suspended.
            _ = await asking.result
            try store.resume()
            let reading = try await app.session.storedCredentials(within: soon)
            guard case .present(let stored) = reading else {
                Issue.record("\(reading)")
                return
            }
            #expect(stored.userPool?.accessToken != issued.userPool?.accessToken)
        }
    }

    @Test("The streams of a mutation, the queue and transfers outlast a suspension, and go on after it")
    func streams() async throws {
        try await withTransferFixture { fixture in
            let app = fixture.app
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await app.transfers.upload(file, to: TransferFixture.location)
            let receipt = try await app.enqueue(giveStars("1", 5))
            let begun = (0..<4).map { _ in Flag() }
            let changes = Task {
                var last: MutationStatus.State?
                for await status in receipt.changes {
                    last = status.state
                    begun[0].set()
                }
                return last
            }
            let progress = Task {
                var last: TransferStatus.State?
                for await progress in upload.progress {
                    last = progress.state
                    begun[1].set()
                }
                return last
            }
            let queue = Task {
                for await status in app.queue {
                    begun[2].set()
                    if status.error != nil || status.unsentCount == 0 { return status.error == nil }
                }
                return false
            }
            let events = Task {
                var events = app.transfers.events.makeAsyncIterator()
                begun[3].set()
                while let status = await events.next(isolation: #isolation) {
                    if status.state == .cancelled { return true }
                }
                return false
            }
            try await eventually { begun.allSatisfy { $0.isSet } }
            try await fixture.store.suspend(within: .seconds(300))
            // Longer than the pause of each stream between two reads.
            try await Task.sleep(for: .milliseconds(200))
            try fixture.store.resume()
            try await upload.cancel()
            try await app.core.operationsStore.database().mutations.discardAll(in: app.core.name, now: Date())
            #expect(await changes.value == .discarded)
            #expect(await progress.value == .cancelled)
            #expect(await queue.value)
            #expect(await events.value)
        }
    }

    @Test("A call during a suspension waits for as long as the store's options say, and throws suspended then")
    func endOfWait() async throws {
        var options = Store.Options()
        options.suspensionWait = .milliseconds(200)
        try await withOpenStore(options: options) { (_, store, app) throws in
            try await app.enqueue(giveStars("1", 5))
            try await store.suspend(within: .seconds(300))
            let calls: [@Sendable () async throws -> Void] = [
                { _ = try app.read(recipeList, allowsPartial: true) },
                { _ = try await app.enqueue(giveStars("1", 4)) },
                { _ = try app.mutations(in: [.pending]) },
            ]
            for call in calls {
                let begun = SuspendingClock.now
                await expectCode(.suspended) { try await call() }
                #expect(begun.duration(to: .now) >= .milliseconds(200))
                try requireNear(begun)
            }
            try store.resume()
        }
    }

    @Test("A suspended store sets aside a mutation that it breaks off, where the server recognizes no repeats")
    func brokenOffOnce() async throws {
        let server = hangingFirst()
        try await withOpenStore(server) { (folder, store, app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let service = Task { try await app.run() }
            try await eventually { server.requests.count == 1 }
            // Does what `suspend` and `resume` do, but waits for the work however slow the machine is.
            let number = try await store.suspension.ask()
            store.operationsStore.changeSignal.notify()
            while try await !store.suspension.workHasEnded(number, within: .milliseconds(20)) {}
            try store.resume()
            let outcome = try await receipt.outcome(within: .seconds(300))
            guard case .setAside(let failure) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(failure?.kind == .outcomeUnknown)
            #expect(server.requests.count == 1)
            service.cancel()
            try await service.value
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("A suspension breaks off all work that is under way when half of its time is over")
    func breaksOffAll() async throws {
        let suspension = Suspension()
        let areBrokenOff = [Flag(), Flag(), Flag()]
        for isBrokenOff in areBrokenOff {
            let work = suspension.begin { isBrokenOff.set() }
            _ = try #require(work)
        }
        let number = try await suspension.ask()
        let hasEnded = try await suspension.workHasEnded(number, within: .milliseconds(40))
        #expect(!hasEnded)
        #expect(areBrokenOff.allSatisfy { $0.isSet })
    }

    @Test("A suspension waits for work that is under way also where other work has ended")
    func waitsForRest() async throws {
        let suspension = Suspension()
        let (ended, other) = (suspension.begin(), suspension.begin())
        let number = try await suspension.ask()
        suspension.end(try #require(ended))
        let hasEnded = try await suspension.workHasEnded(number, within: .milliseconds(40))
        #expect(!hasEnded)
        suspension.end(try #require(other))
        let haveEnded = try await suspension.workHasEnded(number, within: .seconds(60))
        #expect(haveEnded)
    }
}
