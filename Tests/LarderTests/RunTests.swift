import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

@Suite("One service for all that a partition does by itself", .timeLimit(.minutes(10)))
struct RunTests {
    @Test("run sends mutations and transfers files until it is cancelled")
    func both() async throws {
        let (server, storage) = (ScriptedServer.rating(), MemoryStorage())
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(server: server)
            let service = Task { try await app.run(RunOptions(storage: storage)) }
            let file = folder.appending(path: "photo")
            try Data([1, 2, 3]).write(to: file)
            let upload = try await app.transfers.upload(file, to: ObjectLocation(bucket: "photos", key: "1"))
            let receipt = try await app.enqueue(giveStars("1", 5))
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            #expect(try await upload.finished(within: .seconds(300)).state == .done)
            service.cancel()
            try await service.value
            try store.close()
        }
    }

    /// Runs `body` with a new store in which the upload of a file is queued.
    private func withUpload(
        _ server: ScriptedServer? = nil, options: Store.Options = Store.Options(), to storage: String? = nil,
        _ body: (Partition, Transfer) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition(server: server)
            let file = folder.appending(path: "photo")
            try Data([1, 2, 3]).write(to: file)
            let place = ObjectLocation(bucket: "photos", key: "1", storage: storage)
            try await body(app, try await app.transfers.upload(file, to: place))
            try store.close()
        }
    }

    @Test("run transfers nothing while its transfers have no network, and goes on when the network is back")
    func offlineTransfers() async throws {
        let (network, storage) = (SwitchedConnectivity(), MemoryStorage())
        network.set(false)
        try await withUpload(ScriptedServer.rating()) { (app, upload) throws in
            var options = RunOptions(storage: storage)
            options.transfers.connectivity = network
            let service = Task { [options] in try await app.run(options) }
            for await progress in upload.progress where progress.waiting == .noNetwork { break }
            #expect(storage.calls.isEmpty)
            network.set(true)
            #expect(try await upload.finished(within: .seconds(300)).state == .done)
            service.cancel()
            try await service.value
        }
    }

    @Test("A runner of transfers goes on as soon as the network is back, and not at its next look")
    func networkBack() async throws {
        let network = SwitchedConnectivity()
        network.set(false)
        var options = Store.Options()
        options.longestWait = .seconds(3600)
        try await withUpload(options: options) { (app, upload) throws in
            var transferring = TransferRunner.Options()
            transferring.connectivity = network
            let runner = TransferRunner(app, storage: MemoryStorage(), options: transferring)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .offline }
            // Gives the runner time to come to rest, which no signal reports.
            try await Task.sleep(for: .milliseconds(200))
            network.set(true)
            #expect(try await upload.finished(within: .seconds(60)).state == .done)
            running.cancel()
            try await running.value
        }
    }

    @Test("A runner observes the network while it works, and no more when it has ended")
    func observesNoMore() async throws {
        let network = SwitchedConnectivity()
        try await withTransferFixture { fixture in
            let runner = fixture.runner { $0.connectivity = network }
            let running = Task { try await runner.run() }
            try await eventually { network.observerCount == 1 }
            running.cancel()
            try await running.value
            #expect(network.observerCount == 0)
        }
    }

    /// A server that refuses mutations for want of a sign-in until the flag is set.
    private func server(refusingUntil isSignedIn: Flag) -> ScriptedServer {
        ScriptedServer { _ in
            guard isSignedIn.isSet else { throw TransportError(.status, "who?", status: 401) }
            return #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"Soup","rating":5}}}"#
        }
    }

    private func notices(_ body: (Partition) async throws -> Void) async throws -> Int {
        let log = RecordedLog(from: .notice)
        var options = Store.Options()
        options.logger = log.logger
        try await withOpenStore(ScriptedServer.rating(), options: options) { _, _, app in try await body(app) }
        return log.texts.withLock { $0 }.count { $0.contains("call run()") }
    }

    @Test("Where nothing runs, the first mutation that is queued says so in the log, and the next ones do not")
    func notice() async throws {
        let count = try await notices { app in
            for stars in 1...2 { try await app.enqueue(giveStars("1", stars)) }
            try await MutationRunner(app).drain()
        }
        #expect(count == 1)
    }

    @Test("Where a runner has begun, nothing is said of that")
    func noNotice() async throws {
        let count = try await notices { app in
            try await MutationRunner(app).drain()
            try await app.enqueue(giveStars("1", 5))
        }
        #expect(count == 0)
    }

    @Test("What keeps the cache in order looks again after a time, also where it could not keep the bound before")
    func laterLooks() async throws {
        try await withStoreFixture { app in
            var options = CacheUpkeep(maxBytes: 1)
            options.interval = .milliseconds(1)
            let (firstLook, isLookedAgain) = (Countdown(1), Flag())
            let upkeep = Task { [options] in
                await app.keepInOrder(options) { _ in if !firstLook.take() { isLookedAgain.set() } }
            }
            try await eventually { isLookedAgain.isSet }
            upkeep.cancel()
            await upkeep.value
        }
    }

    @Test("run without a transport fails at once, and says why")
    func noTransport() async throws {
        try await withStoreFixture { app in
            await expectCode(.noTransport) { try await app.run() }
            await expectCode(.noTransport) { try await app.run(RunOptions(storage: MemoryStorage())) }
        }
    }

    @Test("drain without a transport fails as run does, and what is queued stays queued")
    func drainWithoutTransport() async throws {
        try await withStoreFixture { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            await expectCode(.noTransport) { try await app.drain() }
            await expectCode(.noTransport) { try await app.drain(RunOptions(storage: MemoryStorage())) }
            #expect(try receipt.status()?.state == .pending)
        }
    }

    @Test(
        "A runner that cannot make or take its lock does not run, and its error has the file error as its cause",
        arguments: [FileCall.Kind.open, .lock])
    func unusableLock(kind: FileCall.Kind) async throws {
        let isFailing = Flag()
        var options = Store.Options()
        options.files = FileSystem(injecting: { call in
            isFailing.isSet && call.kind == kind && call.path.contains("/locks/") ? .failure(EIO) : nil
        })
        try await withOpenStore(ScriptedServer.rating(), options: options) { (_, _, app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            isFailing.set()
            let error = await larderError { try await quickRunner(app).drain() }
            #expect(error?.code == .notRunnable && error?.cause is FileError, "\(error as Any)")
            isFailing.set(false)
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
        }
    }

    @Test("Closing the store ends run with parked")
    func closed() async throws {
        try await withOpenStore(ScriptedServer.rating()) { (_, store, app) throws in
            let service = Task { try await app.run(RunOptions(storage: MemoryStorage())) }
            let receipt = try await app.enqueue(giveStars("1", 5))
            _ = try await receipt.outcome(within: .seconds(300))
            try store.close()
            await expectCode(.parked) { try await service.value }
        }
    }

    @Test("A sign-in to the session, by another process as well, lets the runner go on without resume")
    func sessionWakes() async throws {
        let isSignedIn = Flag()
        let server = server(refusingUntil: isSignedIn)
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        try await withOpenStore(server, options: options) { (_, _, app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            let requests = server.requests.count
            isSignedIn.set()
            let tokens = Credentials.UserPoolTokens(
                idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture)
            try await app.session.signIn(Credentials(userPool: tokens), within: .seconds(300))
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            #expect(server.requests.count == requests + 1)
            running.cancel()
            try await running.value
        }
    }

    @Test(
        "A runner goes on when a guest signs in, and when a user who was signed in before signs in again",
        arguments: [true, false])
    func sessionWakesAgain(isGuest: Bool) async throws {
        let isSignedIn = Flag()
        let server = server(refusingUntil: isSignedIn)
        let user = Credentials(
            userPool: .init(idToken: "i", accessToken: "a", refreshToken: "r", expires: .distantFuture))
        let guest = Credentials(cloud: .init(accessKeyID: "A", secretAccessKey: "s", expires: .distantFuture))
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        try await withOpenStore(server, options: options) { (_, _, app) throws in
            if !isGuest { try await app.session.signIn(user, within: .seconds(300)) }
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            isSignedIn.set()
            try await app.session.accept(isGuest ? guest : user, as: isGuest ? .guest : .user, within: .seconds(300))
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            running.cancel()
            try await running.value
        }
    }

    @Test("A program with sign-ins of its own has run go on by noteSignIn")
    func ownSignIn() async throws {
        let isSignedIn = Flag()
        let server = server(refusingUntil: isSignedIn)
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let service = Task { try await app.run() }
            var states = app.queue.makeAsyncIterator()
            while let status = await states.next(isolation: #isolation), status.runner != .waitingForSignIn {}
            let requests = server.requests.count
            isSignedIn.set()
            app.noteSignIn()
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            #expect(server.requests.count == requests + 1)
            service.cancel()
            try await service.value
        }
    }

    @Test("noteSignIn has mutations and transfers go on that wait for a sign-in at the same time")
    func signInForBoth() async throws {
        let (isSignedIn, storage) = (Flag(), MemoryStorage())
        let server = server(refusingUntil: isSignedIn)
        storage.onCall { _ throws(ObjectError) in
            if !isSignedIn.isSet { throw ObjectError(.expiredCredentials, "expired") }
        }
        try await withUpload(server) { (app, upload) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            var options = TransferRunner.Options()
            options.backoff = Backoff(first: .seconds(600), cap: .seconds(600))
            let mutations = MutationRunner(app)
            let transfers = TransferRunner(app, storage: storage, options: options)
            let running = [Task { try await mutations.run() }, Task { try await transfers.run() }]
            try await eventually { mutations.state == .waitingForSignIn && transfers.state == .waitingForSignIn }
            isSignedIn.set()
            app.noteSignIn()
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            #expect(try await upload.finished(within: .seconds(60)).state == .done)
            for task in running {
                task.cancel()
                try await task.value
            }
        }
    }

    @Test(
        "run and drain carry files to a storage that has a name, also where there is no other",
        arguments: [true, false], [true, false])
    func named(drains: Bool, hasOther: Bool) async throws {
        let (other, archive) = (MemoryStorage(), MemoryStorage())
        try await withUpload(ScriptedServer.rating(), to: "archive") { (app, upload) throws in
            var options = RunOptions()
            if hasOther { options.storage = other }
            options.namedStorages = ["archive": archive]
            let service = Task { [options] in drains ? try await app.drain(options) : try await app.run(options) }
            #expect(try await upload.finished(within: .seconds(60)).state == .done)
            service.cancel()
            try await service.value
            #expect(archive.state.withLock { $0.objects.count } == 1)
            #expect(other.state.withLock { $0.objects.isEmpty })
        }
    }

    @Test("What a program does not say of its runners is as the documentation has it")
    func defaults() {
        let (mutations, transfers) = (RunOptions().mutations, RunOptions().transfers)
        #expect(mutations.maximumLanes == 8 && mutations.maximumFaults == 20)
        #expect(mutations.timeout == .seconds(30) && mutations.questionTimeout == .seconds(30))
        #expect(mutations.resolvers.isEmpty && mutations.checks.isEmpty && mutations.headers.isEmpty)
        #expect(transfers.maximumTransfers == 8 && transfers.connectionsPerHost == 6 && transfers.maximumFaults == 10)
        #expect(transfers.multipartThreshold == 16 << 20 && transfers.partSize == 8 << 20)
        #expect(transfers.bandwidth == nil && transfers.background == nil)
        #expect(transfers.idle == .seconds(30) && transfers.timeout == .seconds(30))
        #expect(transfers.completionTimeout == .seconds(600))
        #expect(RunOptions().cache == CacheUpkeep() && RunOptions().storage == nil)
    }

    @Test("drain asks the resolvers and the checks that its options have")
    func drainOptions() async throws {
        let server = ScriptedServer { number, _ in
            number == 0 ? ScriptedServer.status(409) : .failure(TransportError(.interrupted, "lost"))
        }
        try await withStoreFixture(server) { app in
            let refused = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "keep"))
            let lost = try await app.enqueue(giveStars("1", 4), options: .init(check: "rated"))
            var options = RunOptions()
            options.mutations.resolvers["keep"] = { _ in .keepServers }
            options.mutations.checks["rated"] = { _ in .tookEffect(response: nil) }
            try await app.drain(options)
            #expect(try refused.status()?.state == .discarded)
            #expect(try lost.status()?.state == .applied)
            #expect(server.requests.count == 2)
        }
    }

    @Test("drain sends mutations as the options that it is given say")
    func drainHeaders() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { app in
            try await app.enqueue(giveStars("1", 5))
            let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")
            var options = RunOptions()
            options.mutations.headers = [tenant]
            try await app.drain(options)
            #expect(server.requests.map { $0.headers.contains(tenant) } == [true])
        }
    }

    @Test("A run that has ended removes nothing more from the cache")
    func upkeepEnds() async throws {
        try await withAgedStore { app, wait in
            var options = RunOptions()
            options.cache = CacheUpkeep(maxAge: .seconds(60))
            options.cache.interval = .milliseconds(1)
            let task = Task { [options] in try await app.run(options) }
            try await app.write(recipeList, json: soupAndBread("Soup"))
            wait(100)
            try await eventually { (try? app.read(recipeList)) == nil }
            task.cancel()
            _ = await task.result
            try await app.write(recipeList, json: soupAndBread("Soup"))
            wait(100)
            // An upkeep that goes on would look within this time; there is no signal to wait for.
            try await Task.sleep(for: .milliseconds(100))
            #expect(try app.read(recipeList).isComplete)
        }
    }
}
