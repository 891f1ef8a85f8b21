import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Uploads of which it is not known whether the storage still makes the object", .timeLimit(.minutes(10)))
struct DoubtfulUploadTests {
    enum End: String, Sendable, CaseIterable {
        case pause, cancel
    }

    /// Queues two uploads of one key, and ends the first while the storage works on it.
    ///
    /// - Returns: The second, its bytes, and the runner.
    private func endFirst(
        _ fixture: TransferFixture, by end: End, bytes count: Int, _ change: (inout TransferRunner.Options) -> Void
    ) async throws -> (second: Transfer, bytes: [UInt8], running: Task<Void, any Error>) {
        let (old, _) = try fixture.file("old", bytes: count)
        let (new, bytes) = try fixture.file("new", bytes: 50, seed: 8)
        let first = try await fixture.app.transfers.upload(old, to: TransferFixture.location)
        let second = try await fixture.app.transfers.upload(new, to: TransferFixture.location)
        let runner = fixture.runner(change)
        let running = Task { try await runner.run() }
        try await eventually { fixture.storage.state.withLock { $0.late } == 1 }
        switch end {
        case .pause: try await first.pause()
        case .cancel: try await first.cancel()
        }
        return (second, bytes, running)
    }

    @Test(
        "The next upload of the key is not sent before the one that was ended can take its place no more",
        arguments: End.allCases)
    func whole(end: End) async throws {
        try await withTransferFixture { fixture in
            fixture.storage.lateness.withLock { $0 = (Countdown(1), .milliseconds(300)) }
            let (second, bytes, running) = try await endFirst(fixture, by: end, bytes: 100) { $0.idle = .seconds(5) }
            try await second.finished(within: .seconds(120))
            try await eventually { fixture.storage.state.withLock { $0.landed } == 1 }
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            running.cancel()
            try await running.value
        }
    }

    @Test("An upload in parts holds up the next until it is aborted, and no longer")
    func inParts() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.lateness.withLock { $0 = (Countdown(1), .zero) }
            let (second, bytes, running) = try await endFirst(fixture, by: .cancel, bytes: 9000) {
                $0.completionTimeout = .seconds(3600)
            }
            try await second.finished(within: .seconds(120))
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            let calls = fixture.storage.calls
            let abort = try #require(calls.firstIndex { if case .abort = $0 { true } else { false } })
            #expect(try #require(calls.firstIndex(of: .put(TransferFixture.location.key))) > abort)
            running.cancel()
            try await running.value
        }
    }

    @Test(
        "Without an answer of the storage the object may still appear, and with one it may not",
        arguments: [
            (ObjectError(.cancelled, "ended"), false), (ObjectError(.interrupted, "cut"), false),
            (ObjectError(.timedOut, "late"), false), (ObjectError(.unusableAnswer, "what?"), false),
            (ObjectError(.serverFault, "gateway", status: 502), false),
            (ObjectError(.serverFault, "gateway", status: 504), false),
            (ObjectError(.unusableAnswer, "what?", status: 200), false),
            (ObjectError(.serverFault, "no", status: 500), true), (ObjectError(.unreachable, "away"), true),
        ])
    func answers(error: ObjectError, isOver: Bool) {
        let doubt = UploadDoubt()
        doubt.begin(lasting: .seconds(9))
        doubt.end(unless: error)
        #expect(doubt.time == (isOver ? nil : .seconds(9)))
    }

    @Test(
        "An upload that broke before all was sent, or that was answered, holds up nothing",
        arguments: [
            ObjectError(.interrupted, "cut"), ObjectError(.serverFault, "no", status: 500),
        ])
    func known(error: ObjectError) async throws {
        try await withTransferFixture { fixture in
            let (first, file, bytes) = try await fixture.upload(bytes: 100)
            let failures = Countdown(1)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .put = call, error.status == nil, failures.take() { throw error }
            }
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .put = call, error.status != nil, failures.take() { throw error }
            }
            let runner = fixture.runner {
                $0.idle = .seconds(3600)
                $0.pauseForAnHour()
            }
            try await runner.whileRunning {
                try await eventually { try first.status().failure != nil }
                try await first.pause()
                let second = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
                try await second.finished(within: .seconds(120))
                #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            }
        }
    }

    @Test("A gateway's answer does not say that the storage no longer works on an object", arguments: [502, 504])
    func gateway(status: Int) async throws {
        try await withTransferFixture { fixture in
            let first = try await fixture.upload(bytes: 9000).upload
            let failures = Countdown(1)
            fixture.storage.onAnswer { call throws(ObjectError) in
                guard call == .complete, failures.take() else { return }
                throw ObjectError(.serverFault, "gateway", status: status)
            }
            let runner = fixture.runner {
                $0.completionTimeout = .seconds(3600)
                $0.pauseForAnHour()
            }
            try await runner.whileRunning {
                try await eventually { try first.status().failure != nil }
                try await first.pause()
                let (other, bytes) = try fixture.file("other", bytes: 50, seed: 8)
                let second = try await fixture.app.transfers.upload(other, to: TransferFixture.location)
                let elsewhere = ObjectLocation(bucket: TransferFixture.location.bucket, key: "elsewhere")
                let third = try await fixture.app.transfers.upload(other, to: elsewhere)
                try await third.finished(within: .seconds(120))
                #expect(fixture.storage.object(elsewhere)?.bytes == bytes)
                #expect(try second.status().state == .pending)
            }
        }
    }

    /// How many seconds later uploads of the key still wait, once the first is paused.
    private func waitBehind(_ first: Transfer, of file: URL, _ fixture: TransferFixture) async throws -> Double {
        try await first.pause()
        _ = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
        let core = fixture.app.core
        let found = try core.operationsStore.database().transfers.runnable(in: core.name, now: Date(), limit: 9)
        #expect(found.ids.isEmpty)
        return try #require(found.lookAgain).timeIntervalSinceNow
    }

    @Test(
        "Later uploads wait for `idle` behind an empty object as behind any, and for `completionTimeout` behind parts",
        arguments: [(0, 3_600.0), (100, 3_600.0), (9_000, 7_200.0)])
    func howLong(count: Int, seconds: Double) async throws {
        try await withTransferFixture { fixture in
            let (first, file, _) = try await fixture.upload(bytes: count)
            fixture.storage.onAnswer { call throws(ObjectError) in
                switch call {
                case .put, .complete: throw ObjectError(.interrupted, "the answer is lost")
                default: break
                }
            }
            let runner = fixture.runner {
                ($0.idle, $0.completionTimeout) = (.seconds(3_600), .seconds(7_200))
                $0.pauseForAnHour()
            }
            try await runner.run(untilFailureOf: first)
            let wait = try await waitBehind(first, of: file, fixture)
            #expect(abs(wait - seconds) < 600)
        }
    }

    @Test(
        "A killed runner's upload holds up later uploads as long as a living runner's does",
        arguments: [(100, 3_600.0), (9_000, 7_200.0)])
    func killed(count: Int, seconds: Double) async throws {
        try await withTransferFixture { fixture in
            let (first, file, _) = try await fixture.upload(bytes: count)
            let table = try fixture.app.core.operationsStore.database().transfers
            let begun = try await table.begin(first.id.uuid, owner: "killed", now: Date())
            let attempt = try #require(begun).attempt
            if count > 4_000 {
                let size = Int64(count)
                try await table.note(
                    attempt, [.partSize(size), .upload("u"), .parts([.init(number: 1, size: size, etag: "e")])])
            }
            let network = SwitchedConnectivity()
            network.set(false)
            let runner = fixture.runner {
                ($0.idle, $0.completionTimeout) = (.seconds(3_600), .seconds(7_200))
                $0.connectivity = network
            }
            try await runner.run(until: { try first.status().state == .pending })
            let wait = try await waitBehind(first, of: file, fixture)
            #expect(abs(wait - seconds) < 600)
        }
    }

    @Test("An upload that made its object and is not known just then is done, and aborted in case it is still there")
    func forgottenWhenCompleted() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .complete = call { throw ObjectError(.noSuchUpload, "there is none", status: 404) }
            }
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { if case .abort = $0 { true } else { false } } == 1)
            #expect(fixture.storage.calls.count { $0 == .complete } == 1)
        }
    }

    @Test("An upload whose completion was not answered holds up no later upload once it is found to be done")
    func foundDone() async throws {
        try await withTransferFixture { fixture in
            let (first, file, _) = try await fixture.upload(bytes: 9_000)
            let failures = Countdown(1)
            fixture.storage.onAnswer { call throws(ObjectError) in
                if call == .complete, failures.take() { throw ObjectError(.interrupted, "the answer is lost") }
            }
            try await fixture.drain()
            try await first.finished(within: .zero)
            let second = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let core = fixture.app.core
            let found = try core.operationsStore.database().transfers.runnable(in: core.name, now: Date(), limit: 9)
            #expect(found.ids == [second.id.uuid])
        }
    }

    @Test("The wait of later uploads begins at the end of the failed exchange, however long that took")
    func fromTheEnd() async throws {
        let clock = TestClock()
        try await withTransferFixture(at: clock) { fixture in
            let (first, file, _) = try await fixture.upload(bytes: 100)
            fixture.storage.onAnswer { _ throws(ObjectError) in
                clock.advance(by: .seconds(3_000))
                throw ObjectError(.interrupted, "the answer is lost")
            }
            let runner = fixture.runner {
                $0.idle = .seconds(3_600)
                $0.backoff = Backoff(first: .seconds(7_200), cap: .seconds(7_200))
                $0.random = { 1 }
            }
            try await runner.run(untilFailureOf: first)
            try await first.pause()
            _ = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let core = fixture.app.core
            let found = try core.operationsStore.database().transfers.runnable(in: core.name, now: clock.now, limit: 9)
            #expect(found.ids.isEmpty && found.lookAgain == clock.now + 3_600)
        }
    }
}
