import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@Suite("Why a transfer waits", .timeLimit(.minutes(10)))
struct WaitingTransferTests {
    private func upload(_ fixture: TransferFixture, _ key: String = "a") async throws -> Transfer {
        let (file, _) = try fixture.file(key, bytes: 100)
        return try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: key))
    }

    /// The first progress whose reason fits; nil where the transfer ends without.
    private func first(
        _ transfer: Transfer, where fits: @Sendable (TransferProgress.WaitingReason?) -> Bool
    ) async -> TransferProgress? {
        for await progress in transfer.progress where fits(progress.waiting) { return progress }
        return nil
    }

    @Test("A transfer that no runner carries out says so, and so no more when one does")
    func noRunner() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            #expect(await first(upload) { $0 == .noRunner } != nil)
            try await fixture.drain()
            #expect(await first(upload) { $0 == nil }?.state == .done)
        }
    }

    @Test("A transfer that another process carries out does not wait for a runner of this one")
    func runElsewhere() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            let locks = fixture.folder.appending(path: "store/locks")
            let lock = try LockFile(making: locks.appending(path: "main.transfers").path)
            #expect(try lock.tryLock(.exclusive))
            let progress = await first(upload) { _ in true }
            #expect(progress != nil && progress?.waiting == nil)
            lock.close()
            #expect(await first(upload) { $0 == .noRunner } != nil)
        }
    }

    @Test("Without a network a transfer says so, and goes on when the network is back")
    func noNetwork() async throws {
        try await withTransferFixture { fixture in
            let network = SwitchedConnectivity()
            network.set(false)
            let upload = try await upload(fixture)
            let runner = fixture.runner { $0.connectivity = network }
            try await runner.whileRunning {
                #expect(await first(upload) { $0 == .noNetwork } != nil)
                network.set(true)
                try await upload.finished()
            }
        }
    }

    @Test("Draining does not end while there is no network, and goes on when the network is back")
    func drainsOffline() async throws {
        try await withTransferFixture { fixture in
            let network = SwitchedConnectivity()
            network.set(false)
            let upload = try await upload(fixture)
            let runner = fixture.runner { $0.connectivity = network }
            let draining = Task { try await runner.drain() }
            try await eventually { runner.state == .offline }
            network.set(true)
            try await draining.value
            #expect(try upload.status().state == .done)
        }
    }

    @Test("Where the storage does not take the credentials, a transfer waits for a sign-in")
    func notSignedIn() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.expiredCredentials, "expired") }
            let upload = try await upload(fixture)
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(600), cap: .seconds(600)) }
            try await runner.whileRunning {
                #expect(await first(upload) { $0 == .notSignedIn } != nil)
            }
        }
    }

    /// Expects that an upload which waits for a sign-in is sent once a user signs in, long before its pause is over.
    private func expectGoingOn(after signIn: (Partition) async throws -> Void) async throws {
        try await withTransferFixture { fixture in
            let isSignedIn = Flag()
            fixture.storage.onCall { _ throws(ObjectError) in
                if !isSignedIn.isSet { throw ObjectError(.expiredCredentials, "expired") }
            }
            let upload = try await upload(fixture)
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(600), cap: .seconds(600)) }
            try await runner.whileRunning {
                try await eventually { runner.state == .waitingForSignIn }
                isSignedIn.set()
                try await signIn(fixture.app)
                #expect(try await upload.finished(within: .seconds(60)).state == .done)
            }
        }
    }

    @Test("A transfer that waits for a sign-in goes on once the program has noted one")
    func notedSignIn() async throws {
        try await expectGoingOn { $0.noteSignIn() }
    }

    @Test("A storage that asks for patience keeps all transfers to it waiting until then")
    func throttled() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { _ throws(ObjectError) in
                throw ObjectError(.throttled, "slow down", retryAfter: .seconds(600))
            }
            let uploads = [try await upload(fixture, "a"), try await upload(fixture, "b")]
            let runner = fixture.runner { $0.maximumTransfers = 1 }
            try await runner.whileRunning {
                for upload in uploads {
                    let waiting = await first(upload) { if case .throttled = $0 { true } else { false } }?.waiting
                    guard case .throttled(let time) = waiting else {
                        Issue.record("it waits for \(String(describing: waiting))")
                        continue
                    }
                    #expect(time.timeIntervalSinceNow > 300)
                }
            }
        }
    }

    @Test("A reader of a transfer's progress sees that its storage is throttled because of another transfer")
    func throttledMeanwhile() async throws {
        try await withTransferFixture { fixture in
            let isFollowed = Flag()
            fixture.storage.onCall { _ throws(ObjectError) in
                await isFollowed.wait()
                throw ObjectError(.throttled, "slow down", retryAfter: .seconds(600))
            }
            _ = try await upload(fixture, "a")
            let second = try await upload(fixture, "b")
            let told = Mutex<[TransferProgress.WaitingReason?]>([])
            let following = Task {
                for await progress in second.progress { told.withLock { $0.append(progress.waiting) } }
            }
            try await fixture.runner { $0.maximumTransfers = 1 }.whileRunning {
                try await eventually { told.withLock { $0.last == .some(nil) } }
                // By then the reader waits for a change.
                try await Task.sleep(for: .milliseconds(300))
                isFollowed.set()
                try await eventually {
                    told.withLock { $0.contains { if case .throttled = $0 { true } else { false } } }
                }
            }
            following.cancel()
            await following.value
        }
    }

    /// Runs `body` with an upload that waits after a failure of the storage, and what it then says that it waits for.
    private func withFailed(
        _ body: (_ upload: Transfer, _ waiting: TransferProgress.WaitingReason?) throws -> Void
    ) async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.serverFault, "broken") }
            let upload = try await upload(fixture)
            try await fixture.runner { $0.pauseForAnHour() }.whileRunning {
                let waiting = await first(upload) { if case .retry = $0 { true } else { false } }?.waiting
                try body(upload, waiting)
            }
        }
    }

    @Test("After a failure that may pass a transfer says when it is tried again")
    func failed() async throws {
        try await withFailed { _, waiting in #expect(waiting != nil) }
    }

    @Test("A waiting transfer's progress has the stored time before which no runner begins it")
    func failedUntil() async throws {
        try await withFailed { upload, waiting in
            guard case .retry(let time) = waiting else { throw Silence() }
            #expect(try time == upload.status().notBefore && time.timeIntervalSinceNow > 3_000)
        }
    }

    @Test("A transfer that a storage asked to wait says so also to the next runner, which has asked nothing yet")
    func askedBefore() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { _ throws(ObjectError) in
                throw ObjectError(.throttled, "slow down", retryAfter: .seconds(3600))
            }
            let upload = try await upload(fixture)
            try await fixture.runner().run(untilFailureOf: upload)
            try await fixture.runner().whileRunning {
                let progress = await first(upload) { if case .noRunner = $0 { false } else { $0 != nil } }
                guard case .throttled(let end)? = progress?.waiting else { throw Silence() }
                #expect(end > .now)
            }
        }
    }

    @Test(
        "A transfer that waits for a sign-in goes on when a user or a guest signs in to the partition's session",
        arguments: [true, false])
    func sessionSignIn(isGuest: Bool) async throws {
        let user = Credentials(
            userPool: .init(idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture))
        let guest = Credentials(cloud: .init(accessKeyID: "A", secretAccessKey: "s", expires: .distantFuture))
        try await expectGoingOn { app in
            let session = try app.session
            try await session.accept(isGuest ? guest : user, as: isGuest ? .guest : .user, within: .seconds(300))
        }
    }

    @Test("A paused transfer does not say that it waits, also where nothing carries transfers out")
    func paused() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            try await upload.pause()
            let progress = await first(upload) { _ in true }
            #expect(progress?.state == .paused && progress?.waiting == nil)
        }
    }

    @Test("A transfer says that nothing carries it out as soon as its runner has ended")
    func runnerEnded() async throws {
        try await withTransferFixture { fixture in
            let network = SwitchedConnectivity()
            network.set(false)
            let upload = try await upload(fixture)
            let (isOffline, hasNoRunner) = (Flag(), Flag())
            let reading = Task {
                for await progress in upload.progress {
                    if progress.waiting == .noNetwork { isOffline.set() }
                    if progress.waiting == .noRunner, isOffline.isSet { hasNoRunner.set() }
                }
            }
            defer { reading.cancel() }
            try await fixture.runner { $0.connectivity = network }.whileRunning {
                try await eventually { isOffline.isSet }
                // By then the reader waits for a change. No signal reports that.
                try await Task.sleep(for: .milliseconds(250))
            }
            try await eventually { hasNoRunner.isSet }
        }
    }
}
