import Dispatch
import Foundation
import LarderTestSupport
import ServiceLifecycle
import Synchronization
import Testing

@testable import Larder

@Suite("How runners and streams end while nothing happens", .timeLimit(.minutes(10)))
struct RunnerEndTests {
    /// What no notification tells of is not found.
    private static var options: Store.Options {
        var options = Store.Options()
        options.longestWait = .seconds(3600)
        return options
    }

    /// Holds a suspension's lock from when it is let go of until it is told to let go: the works that are under way are
    /// let go of under that lock.
    private final class LockHolder: Sendable {
        private let isHeld: Flag
        private let isOver: DispatchSemaphore

        init(_ isHeld: Flag, until isOver: DispatchSemaphore) { (self.isHeld, self.isOver) = (isHeld, isOver) }

        func breakOff() {}

        deinit {
            isHeld.set()
            isOver.wait()
        }
    }

    @Test(
        "A runner that is stopped just after it saw that it was not, does not wait for what was told before",
        arguments: [false, true])
    func stopped(isSuspended: Bool) async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options) { (_, _, app) throws in
            let suspension = app.core.operationsStore.suspension
            let (isHeld, isOver) = (Flag(), DispatchSemaphore(value: 0))
            let work = try #require(suspension.begin(LockHolder(isHeld, until: isOver).breakOff))
            if isSuspended { _ = try await suspension.ask() }
            let signal = ChangeSignal()
            let lifecycle = RunnerLifecycle(app.core, changeSignal: signal, lockSuffix: ".test")
            let (isLooking, goesOn, isEnded) = (Flag(), Flag(), Flag())
            // It blocks threads that are none of Swift's few.
            let executor = OutsideExecutor()
            let running = Task {
                defer { isEnded.set() }
                try await lifecycle.run {
                    // As where answers are not to be lost, or a service is to shut down: no task is cancelled.
                    try await Task(executorPreference: executor) {
                        try await lifecycle.alone(SwitchedConnectivity()) { _ in
                            await withTaskExecutorPreference(executor) {
                                let _: Int? = await lifecycle.next {
                                    let isFirst = !isLooking.isSet
                                    isLooking.set()
                                    await goesOn.wait()
                                    return isFirst ? .wait(.zero) : .rest
                                }
                            }
                        }
                    }.value
                }
            }
            try await eventually { isSuspended ? lifecycle.state == .suspended : isLooking.isSet }
            Thread.detachNewThread { suspension.end(work) }
            await isHeld.wait()
            // It asks next whether it is stopped, and then whether it is suspended: for that it has to wait here. Where
            // it comes there later than this, it ends in any case.
            goesOn.set()
            if isSuspended { signal.notify() }
            try await Task.sleep(for: .milliseconds(100))
            running.cancel()
            isOver.signal()
            try await eventually { isEnded.isSet }
            try await running.value
        }
    }

    @Test("What follows the queue and the transfers ends with the store", arguments: [true, false])
    func followed(isOfMutations: Bool) async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options) { (_, store, app) throws in
            let (isWaiting, isEnded) = (Flag(), Flag())
            let following = Task {
                defer { isEnded.set() }
                if isOfMutations {
                    for await _ in app.queue { isWaiting.set() }
                } else {
                    var iterator = app.transfers.events.makeAsyncIterator()
                    isWaiting.set()
                    while try await iterator.next() != nil {}
                }
            }
            try await eventually { isWaiting.isSet }
            try store.close()
            try await eventually { isEnded.isSet }
            try await following.value
        }
    }

    @Test("A runner without a network ends when its store is closed", arguments: [true, false])
    func closed(isOfMutations: Bool) async throws {
        try await withOpenStore(ScriptedServer.rating(), options: Self.options) { (_, store, app) throws in
            let (connectivity, ended) = (SwitchedConnectivity(), Flag())
            connectivity.set(false)
            var options = TransferRunner.Options()
            options.connectivity = connectivity
            let mutations = quickRunner(app) { $0.connectivity = connectivity }
            let transfers = TransferRunner(app, storage: MemoryStorage(), options: options)
            let running = Task { () -> LarderError.Code? in
                defer { ended.set() }
                do {
                    if isOfMutations { try await mutations.run() } else { try await transfers.run() }
                } catch { return (error as? LarderError)?.code }
                return nil
            }
            try await eventually { (isOfMutations ? mutations.state : transfers.state) == .offline }
            try store.close()
            try await eventually { ended.isSet }
            #expect(await running.value == .parked)
        }
    }

    @Test("What went wrong first is what a runner ends with")
    func firstFailure() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { app in
            let runner = MutationRunner(app)
            runner.lifecycle.end(because: LarderError(.data, "first"))
            runner.lifecycle.end(because: LarderError(.operation, "second"))
            await expectCode(.data) { try await runner.drain() }
        }
    }

    @Test("A runner that cannot record an answer begins nothing more, waits for requests under way, and then throws")
    func failing() async throws {
        let (isSlowSent, isLetGo) = (Flag(), Flag())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            if request.values["recipe"] as? String != "slow" {
                await isSlowSent.wait()
                return ScriptedServer.done(request)
            }
            isSlowSent.set()
            // The transport ends when its task is cancelled.
            while !isLetGo.isSet {
                if Task.isCancelled { return .failure(TransportError(.cancelled, "cancelled")) }
                try? await Task.sleep(for: .milliseconds(2))
            }
            return ScriptedServer.done(request)
        }
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.lockTimeout = .milliseconds(50)
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition(server: server)
            let slow = try await app.enqueue((1...2).map { (giveStars("slow", $0), MutationOptions(lane: "slow")) })
            try await app.enqueue(giveStars("other", 3), options: .init(lane: "other"))
            let other = Mutex<OtherProgram?>(nil)
            let runner = quickRunner(app) { options in
                options.reached = { step in
                    guard step == .received else { return }
                    // The first answer belongs to the other lane.
                    other.withLock { other in
                        guard other == nil, let new = try? OtherProgram(folder) else { return }
                        try? new.run("BEGIN EXCLUSIVE")
                        other = new
                    }
                }
            }
            let running = Task { try await runner.run() }
            try await eventually { runner.lifecycle.hasFailed }
            try other.withLock { $0 }?.run("COMMIT")
            isLetGo.set()
            await expectCode(.operationsBusy) { try await running.value }
            #expect(try slow.map { try $0.status()?.state } == [.applied, .pending])
            #expect(server.requests.count == 2)
            try store.close()
        }
    }

    /// What a service carries out, which tells when it is to shut down.
    private struct Sending: Service {
        let runner: MutationRunner
        let drains: Bool
        let isShuttingDown: Flag

        func run() async throws {
            try await withGracefulShutdownHandler {
                try await drains ? runner.drain() : runner.run()
            } onGracefulShutdown: {
                isShuttingDown.set()
            }
        }
    }

    @Test(
        "A service group that shuts down waits for what drain has left, and has run begin no more",
        arguments: [true, false])
    func shutDown(drains: Bool) async throws {
        let (isAsked, mayAnswer, isShuttingDown) = (Flag(), Flag(), Flag())
        let server = ScriptedServer(ScriptedServer.key) { _, request in
            isAsked.set()
            await mayAnswer.wait()
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let receipts = [try await app.enqueue(giveStars("1", 5)), try await app.enqueue(giveStars("1", 4))]
            let runner = quickRunner(app)
            let sending = Sending(runner: runner, drains: drains, isShuttingDown: isShuttingDown)
            let group = ServiceGroup(services: [sending], logger: RecordedLog(from: .critical).logger)
            let running = Task { try await group.run() }
            await isAsked.wait()
            await group.triggerGracefulShutdown()
            try await eventually { isShuttingDown.isSet && (drains || runner.lifecycle.isStopping) }
            mayAnswer.set()
            try await running.value
            #expect(try receipts.map { try $0.status()?.state } == [.applied, drains ? .applied : .pending])
        }
    }

    /// Stops a runner while a mutation is in flight, lets the answer come, and returns the status of the mutation once
    /// the runner has ended.
    private func end(
        _ answer: Result<GraphQLAnswer, TransportError>, _ options: MutationOptions,
        _ change: (inout MutationRunner.Options) -> Void
    ) async throws -> MutationStatus? {
        let (isAsked, mayAnswer) = (Flag(), Flag())
        let server = ScriptedServer { _, _ in
            isAsked.set()
            await mayAnswer.wait()
            return answer
        }
        var status: MutationStatus?
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5), options: options)
            let runner = quickRunner(app, change)
            let running = Task { try await runner.run() }
            await isAsked.wait()
            running.cancel()
            try await eventually { runner.lifecycle.isStopping }
            mayAnswer.set()
            try await running.value
            status = try receipt.status()
        }
        return status
    }

    @Test("A runner that is stopped while an answer is lost asks the mutation's check before it ends")
    func askedCheck() async throws {
        let lost = TransportError(.interrupted, "cut")
        let status = try await end(.failure(lost), .init(check: "look")) { options in
            options.checks["look"] = { _ in .tookEffect(response: nil) }
        }
        #expect(status?.state == .applied)
    }

    @Test("A runner that is stopped while the server answers with a conflict asks the resolver before it ends")
    func askedResolver() async throws {
        let status = try await end(ScriptedServer.status(409), .init(resolver: "merge")) { options in
            options.resolvers["merge"] = { _ in .keepServers }
        }
        #expect(status?.state == .discarded)
    }
}
