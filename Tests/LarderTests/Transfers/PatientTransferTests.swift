import Foundation
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Storages that ask for patience", .timeLimit(.minutes(10)))
struct PatientTransferTests {
    private func upload(_ count: Int, _ fixture: TransferFixture, to bucket: String = "media") async throws
        -> [Transfer]
    {
        let (file, _) = try fixture.file(bytes: 100)
        return try await fixture.app.transfers.upload(
            (0..<count).map { (file, ObjectLocation(bucket: bucket, key: "\($0)"), UploadOptions()) })
    }

    @Test("A host that asks for patience is left alone by all transfers to it, and no other is")
    func host() async throws {
        try await withTransferFixture { fixture in
            let calls = Mutex(0)
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .put(let key) = call, key != "other" else { return }
                calls.withLock { $0 += 1 }
                throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(600))
            }
            let uploads = try await upload(200, fixture)
            try await fixture.runner().whileRunning {
                try await eventually { try uploads[0].status().failure != nil }
                let (file, _) = try fixture.file(bytes: 100)
                let other = try await fixture.app.transfers.upload(file, to: .init(bucket: "other", key: "other"))
                #expect(try await other.finished().state == .done)
                try await Task.sleep(for: .milliseconds(300))
                #expect(calls.withLock { $0 } <= 6)
                let status = try uploads[0].status()
                #expect(status.state == .pending)
                #expect((status.notBefore ?? .distantPast) > Date(timeIntervalSinceNow: 300))
            }
        }
    }

    @Test(
        "A storage without time that asks for no pause gets fewer than thirty requests in a minute",
        arguments: [ObjectError.Code.throttled, .serverFault])
    func noPause(code: ObjectError.Code) async throws {
        // A second of the storage's is so long here.
        let second = Duration.milliseconds(50)
        try await withTransferFixture { fixture in
            let requests = RequestTimes()
            fixture.storage.onCall { call throws(ObjectError) in
                requests.add()
                throw ObjectError(code, "no time", retryAfter: .zero)
            }
            let uploads = try await upload(1, fixture)
            let runner = fixture.runner {
                $0.backoff = Backoff(first: second, cap: second * 120)
                $0.maximumFaults = 100
            }
            try await runner.whileRunning {
                try await eventually { requests.count >= 30 || requests.count > 1 && requests.span >= second * 60 }
                #expect(requests.count(within: second * 60) < 30)
                #expect(try uploads[0].status().state != .failed)
            }
        }
    }

    @Test("Exchanges side by side that are all asked for patience count once: the pause is the first, not the sixth")
    func sideBySide() async throws {
        let asked = Mutex<[Int]>([])
        let connections = Connections(limit: 6) { consecutiveThrottles, _ in
            asked.withLock { $0.append(consecutiveThrottles) }
            return .seconds(600)
        }
        let begun = Mutex(0)
        let exchange: @Sendable () async throws -> Void = {
            begun.withLock { $0 += 1 }
            try await eventually { begun.withLock { $0 } >= 6 }
            throw ObjectError(.throttled, "SlowDown", status: 503)
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    let error = await #expect(throws: ObjectError.self) {
                        try await connections.with("host", exchange)
                    }
                    #expect(error?.code == .throttled)
                }
            }
        }
        #expect(asked.withLock { $0 }.max() == 1)
    }

    @Test("A transfer's pause heeds what a failing storage asks for")
    func failing() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { call throws(ObjectError) in
                throw ObjectError(.serverFault, "InternalError", status: 500, retryAfter: .seconds(600))
            }
            let uploads = try await upload(1, fixture)
            try await fixture.runner().whileRunning {
                try await eventually { try uploads[0].status().failure != nil }
                let time = try #require(try uploads[0].status().notBefore).timeIntervalSinceNow
                #expect(time > 300 && time < 700)
            }
        }
    }

    @Test("Of a century that a host asks for it gets a day")
    func longestPause() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { call throws(ObjectError) in
                throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(100 * 366 * 86_400))
            }
            let uploads = try await upload(1, fixture)
            try await fixture.runner().whileRunning {
                try await eventually { try uploads[0].status().failure != nil }
                let time = try #require(try uploads[0].status().notBefore).timeIntervalSinceNow
                #expect(time > 86_000 && time < 87_000)
            }
        }
    }

    @Test("After that one goes there alone, and one more side by side for each that went well")
    func widening() async throws {
        try await withTransferFixture { fixture in
            let seen = Mutex<[(busy: Int, ended: Int)]>([])
            let ended = Mutex(0)
            let storage = fixture.storage
            storage.onCall { call throws(ObjectError) in
                let now = (storage.state.withLock { $0.busy }, ended.withLock { $0 })
                let count = seen.withLock { seen in
                    seen.append(now)
                    return seen.count
                }
                do {
                    // All six are there before one is told.
                    try await eventually { seen.withLock { $0.count } >= 6 }
                    if count > 6 { try await Task.sleep(for: .milliseconds(50)) }
                } catch {
                    if !(error is CancellationError) { Issue.record(error) }
                    throw ObjectError(.cancelled, "cancelled")
                }
                if count == 1 { throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(1)) }
            }
            storage.onAnswer { _ in
                if seen.withLock({ $0.count }) > 6 { ended.withLock { $0 += 1 } }
            }
            _ = try await upload(20, fixture)
            try await fixture.drain { $0.connectionsPerHost = 6 }
            // One or the other may have been begun before the plea was heard.
            let after = seen.withLock { $0 }.dropFirst(6).drop { $0.busy > 1 }
            #expect(after.count > 9)
            for call in after { #expect(call.busy <= call.ended + 1, "\(after)") }
            #expect(storage.state.withLock { $0.objects.count } == 20)
        }
    }

    @Test("A place is added for each exchange that went well, and not all at once")
    func placesOneByOne() async throws {
        struct Refused: Error {}
        final class Busy: Sendable {
            private let state = Mutex((now: 0, most: 0))
            var most: Int { state.withLock { $0.most } }
            func change(by count: Int) {
                state.withLock { state in
                    state.now += count
                    state.most = max(state.most, state.now)
                }
            }
        }
        let connections = Connections(limit: 6) { _, _ in .zero }
        connections.hold("host", for: nil, since: .now)
        try await connections.with("host") {}
        let busy = Busy()
        let exchange: @Sendable () async throws -> Void = {
            busy.change(by: 1)
            try await Task.sleep(for: .milliseconds(20))
            busy.change(by: -1)
            // Ends badly, so that no place is added.
            throw Refused()
        }
        await withDiscardingTaskGroup { group in
            for _ in 0..<12 { group.addTask { try? await connections.with("host", exchange) } }
        }
        #expect(busy.most <= 2)
    }

    @Test("An exchange that was begun before a pause, and then goes well, does not make the next pause a short one")
    func begunBefore() async throws {
        let asked = Mutex<[Int]>([])
        let connections = Connections(limit: 6) { consecutiveThrottles, _ in
            asked.withLock { $0.append(consecutiveThrottles) }
            return .zero
        }
        let (hasBegun, mayEnd) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
        let early = Task {
            try await connections.with("host") {
                hasBegun.continuation.yield()
                for await _ in mayEnd.stream { break }
            }
        }
        for await _ in hasBegun.stream { break }
        connections.hold("host", for: nil, since: .now)
        mayEnd.continuation.yield()
        try await early.value
        connections.hold("host", for: nil, since: .now)
        #expect(asked.withLock { $0 } == [1, 2])
    }

    @Test("A transfer that asks while its host is left alone waits for as long as the host is")
    func hostPause() async throws {
        try await withTransferFixture { fixture in
            let (isOtherSent, isFirstHeard) = (Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .put(let key) = call else { return }
                if key == "0" {
                    await isOtherSent.wait()
                    throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(600))
                }
                isOtherSent.set()
                await isFirstHeard.wait()
                throw ObjectError(.throttled, "SlowDown")
            }
            let uploads = try await upload(2, fixture)
            try await fixture.runner().whileRunning {
                try await eventually { try uploads[0].status().failure != nil }
                isFirstHeard.set()
                try await eventually { try uploads[1].status().failure != nil }
                #expect(try #require(try uploads[1].status().notBefore).timeIntervalSinceNow > 60)
            }
        }
    }

    @Test(
        "That the storage is away or asks for patience is no fault of a transfer, however often",
        arguments: [ObjectError.Code.throttled, .unreachable, .insecure, .notPrepared])
    func noFault(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let failures = Countdown(5)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .put = call, failures.take() { throw ObjectError(code, "not now", retryAfter: .zero) }
            }
            let uploads = try await upload(1, fixture)
            try await fixture.drain { $0.maximumFaults = 2 }
            #expect(try uploads[0].status().state == .done)
        }
    }

    @Test(
        "Refused credentials do not count as faults of a transfer, however often they are refused",
        arguments: [ObjectError.Code.expiredCredentials, .invalidCredentials])
    func refusalsAreNoFaults(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let failures = Countdown(5)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .put = call, failures.take() { throw ObjectError(code, "who?") }
            }
            let uploads = try await upload(1, fixture)
            try await fixture.drain { $0.maximumFaults = 2 }
            #expect(try uploads[0].status().state == .done)
        }
    }

    @Test("A runner that waits for a sign-in asks again when its pause is over, though nothing tells it to")
    func asksAgain() async throws {
        try await withTransferFixture { fixture in
            let failures = Countdown(1)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .put = call, failures.take() { throw ObjectError(.expiredCredentials, "who?") }
            }
            let uploads = try await upload(1, fixture)
            // Longer than all that changes in the store when the storage has refused.
            let runner = fixture.runner { $0.backoff = Backoff(first: .milliseconds(400), cap: .milliseconds(400)) }
            try await runner.whileRunning {
                let status = try await uploads[0].finished(within: .seconds(20))
                #expect(status.state == .done)
            }
        }
    }

    @Test("An exchange that waits for its place does not begin where the host asks for patience meanwhile")
    func heldWhileWaiting() async throws {
        let connections = Connections(limit: 1) { _, _ in .seconds(3_600) }
        let (hasBegun, mayEnd) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
        let first = Task {
            try await connections.with("host") {
                hasBegun.continuation.yield()
                for await _ in mayEnd.stream { break }
            }
        }
        for await _ in hasBegun.stream { break }
        let hasRun = Mutex(false)
        let second = Task { try await connections.with("host") { hasRun.withLock { $0 = true } } }
        // Whether it waits by then or not, it is refused.
        try await Task.sleep(for: .milliseconds(50))
        connections.hold("host", for: nil, since: .now)
        mayEnd.continuation.yield()
        try await first.value
        let error = await #expect(throws: ObjectError.self) { try await second.value }
        #expect(error?.code == .throttled)
        #expect(!hasRun.withLock { $0 })
    }

    @Test("Refusals of credentials within one pause count as one")
    func refusalsWithinPause() async throws {
        try await withTransferFixture { fixture in
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(3_600), cap: .seconds(100_000)) }
            for _ in 0..<8 { runner.noteRefusal(by: nil) }
            #expect(runner.progress.withLock { $0.refusals[nil]?.count } == 1)
        }
    }

    @Test("The pause after credentials that are not taken grows with each refusal")
    func refusalsGrow() async throws {
        try await withTransferFixture { fixture in
            let runner = fixture.runner { $0.backoff = Backoff(first: .milliseconds(40), cap: .seconds(100_000)) }
            for number in 0..<4 {
                let start = SuspendingClock.now
                runner.noteRefusal(by: nil)
                let refusal = try #require(runner.progress.withLock { $0.refusals[nil] })
                #expect(refusal.until - start >= .milliseconds(40 << number))
                try await Task.sleep(until: refusal.until, clock: .suspending)
            }
        }
    }

    @Test("The pauses after credentials that are not taken begin anew once bytes have arrived")
    func refusalsBeginAnew() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let table = try fixture.app.core.operationsStore.database().transfers
            let stored = try #require(try table.find(upload.id.uuid))
            let runner = fixture.runner { $0.backoff = Backoff(first: .milliseconds(1), cap: .seconds(100_000)) }
            for _ in 0..<3 {
                runner.noteRefusal(by: nil)
                let refusal = try #require(runner.progress.withLock { $0.refusals[nil] })
                try await Task.sleep(until: refusal.until, clock: .suspending)
            }
            runner.noteBegun(stored)
            runner.noteArrival(of: stored.id)
            runner.noteRefusal(by: nil)
            #expect(runner.progress.withLock { $0.refusals[nil]?.count } == 1)
        }
    }

    @Test("Pauses grow with failures in a row, and not with all attempts there ever were")
    func inARow() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 40 * 1024).upload
            let failed = Mutex<Set<Int>>([])
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(let number) = call, number.isMultiple(of: 2) else { return }
                if failed.withLock({ $0.insert(number).inserted }) { throw ObjectError(.interrupted, "cut") }
            }
            // The last pause would be of hours.
            try await fixture.drain {
                $0.connectionsPerHost = 1
                $0.backoff = Backoff(first: .milliseconds(20), cap: .seconds(100_000))
                $0.random = { 1 }
                $0.maximumFaults = 3
            }
            #expect(try await upload.finished().attempts == 21)
        }
    }

    @Test("Bytes wait for small turns, and a wait that is cancelled keeps none of the time", .timeLimit(.minutes(1)))
    func pacer() async throws {
        #expect(Pacer(bandwidth: nil).turn == nil)
        #expect(Pacer(bandwidth: 1 << 20).turn == 256 << 10)
        #expect(Pacer(bandwidth: 1000).turn == 4096)
        let pacer = Pacer(bandwidth: 1000)
        try await pacer.wait(for: 500)
        let waiting = Task {
            while !Task.isCancelled { await Task.yield() }
            try await pacer.wait(for: 1_000_000)
        }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        try await pacer.wait(for: 1)
    }

    @Test("An upload whose parts have all arrived is completed although its host asked for a pause")
    func completed() async throws {
        try await withTransferFixture { fixture in
            let (large, bytes) = try fixture.file("large", bytes: 5 * 1024)
            let first = try await fixture.app.transfers.upload(large, to: TransferFixture.location)
            let (isLastAsked, haveArrived, isThrottled) = (Flag(), Flag(), Flag())
            let left = Countdown(4)
            fixture.storage.onAnswer { call in
                guard case .putPart = call, left.take(), left.count == 0 else { return }
                haveArrived.set()
            }
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(5):
                    isLastAsked.set()
                    await isThrottled.wait()
                case .put:
                    // By then no part has to ask for a place any more.
                    await isLastAsked.wait()
                    await haveArrived.wait()
                    throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(600))
                default: break
                }
            }
            let second = try await upload(1, fixture)[0]
            try await fixture.runner().whileRunning {
                try await eventually { try second.status().failure != nil }
                isThrottled.set()
                try await eventually { try first.status().failure != nil || first.status().isEnded }
                #expect(try first.status().state == .done)
                #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            }
        }
    }

    @Test("A cancelled upload is aborted although its host asked for a pause", .timeLimit(.minutes(1)))
    func aborted() async throws {
        try await withTransferFixture { fixture in
            let (large, _) = try fixture.file("large", bytes: 10_000)
            let first = try await fixture.failedUpload(of: large)
            try await first.pause()
            fixture.storage.onCall { call throws(ObjectError) in
                if case .put = call { throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(600)) }
            }
            let (small, _) = try fixture.file("small", bytes: 100)
            let second = try await fixture.app.transfers.upload(small, to: TransferFixture.location)
            try await fixture.runner().whileRunning {
                try await eventually { try second.status().failure != nil }
                try await first.cancel()
                try await eventually { try first.status().state == .cancelled }
                #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            }
        }
    }

    @Test("A host that asks for patience where a download looks at its object is left alone by uploads, too")
    func askedByDownload() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { call throws(ObjectError) in
                if case .head = call { throw ObjectError(.throttled, "SlowDown", retryAfter: .seconds(600)) }
            }
            let download = try await fixture.download()
            try await fixture.runner { $0.maximumTransfers = 1 }.whileRunning {
                try await eventually { try download.status().failure != nil }
                let held = try await upload(1, fixture)
                let (file, _) = try fixture.file("other", bytes: 100)
                let other = try await fixture.app.transfers.upload(file, to: .init(bucket: "other", key: "other"))
                #expect(try await other.finished().state == .done)
                #expect(try held[0].status().attempts == 0)
            }
        }
    }
}
