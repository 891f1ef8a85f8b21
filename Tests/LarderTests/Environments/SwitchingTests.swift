import Foundation
import Larder
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

func backend(_ name: String, succeeds predecessor: BackendEnvironment.Predecessor? = nil) -> BackendEnvironment {
    BackendEnvironment(
        name: name, api: .init(url: URL(string: "https://\(name).example/graphql") ?? URL(filePath: "/")),
        predecessor: predecessor)
}

private let title = GraphQLFragment("fragment F on Recipe { title }")

/// Runs `body` with a new store, which is closed afterwards.
func withEmptyStore(_ body: (Store) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
        try await body(store)
        try store.close()
    }
}

private func code(_ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch { return (error as? LarderError)?.code.rawValue ?? "\(error)" }
}

@Suite("Switching environments", .timeLimit(.minutes(10)))
struct SwitchingTests {
    @Test("A -> B -> A gives back the cache, the queue, the watchers and the pins of A, whole, and B has none of them")
    func whole() async throws {
        try await withEmptyStore { store in
            let a = try store.partition(of: backend("a"))
            try await a.write("Recipe:1", title, ["title": "Soup"])
            let queued = try await a.enqueue(
                giveStars("1", 5),
                options: .init(optimisticResponse: [
                    "rate": ["__typename": "Recipe", "id": "1", "title": "Soup", "rating": 5]
                ]))
            var named = try await a.watch(named: "all", recipeList).makeAsyncIterator()
            _ = try await named.next()
            try await a.pin(named: "all", recipeList)

            let there = try await store.switch(to: backend("b"))
            #expect(there.left?.partition.environment == "a" && there.left?.after.pending == 1)
            #expect(there.entered.after.pending == 0)
            let b = there.partition
            #expect(await code { _ = try b.read("Recipe:1", title) } == "larder.miss")
            #expect(try b.mutations().isEmpty && b.watcherNames().isEmpty && b.pins().isEmpty)
            try await b.write("Recipe:1", title, ["title": "Stew"])

            let back = try await store.switch(to: backend("a")).partition
            #expect(try back.read("Recipe:1", title)["title"]?.string == "Soup")
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            #expect(try back.read("Recipe:1", rating)["rating"]?.double == 5)
            #expect(try back.mutations().map(\.id) == [queued.id] && back.watcherNames() == ["all"])
            #expect(try back.pins().map(\.name) == ["all"])
            let server = ScriptedServer.rating()
            let sending = try store.partition(of: backend("a"), server: server)
            try await quickRunner(sending).drain()
            #expect(server.effects == ["1 5"])
        }
    }

    #if os(Linux)
    @Test("The caches of the four partitions that were parked last stay open, and no others")
    func openCaches() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            var counts: [Int] = []
            for number in 0..<8 {
                let app =
                    number == 0
                    ? try store.partition(of: backend("e0"))
                    : try await store.switch(to: backend("e\(number)")).partition
                try await app.write("Recipe:1", title, ["title": "Soup"])
                // The current one's is open beside the four.
                if number > 4 { try await eventually { try openFiles(below: folder).count <= counts[4] } }
                counts.append(try openFiles(below: folder).count)
            }
            #expect(counts[4] > counts[3])
            try store.close()
        }
    }
    #endif

    @Test("The previous user's cache and queue do not appear after signing in as another")
    func users() async throws {
        try await withEmptyStore { store in
            let ada = try store.partition(of: backend("a"), user: .user("ada"))
            try await ada.write("Recipe:1", title, ["title": "Soup"])
            try await ada.enqueue(giveStars("1", 5))
            let bob = try await store.switch(toUser: .user("bob"), pending: .park).partition
            #expect(await code { _ = try bob.read("Recipe:1", title) } == "larder.miss")
            #expect(try bob.mutations().isEmpty)
            #expect(try store.current()?.user == .user("bob"))
        }
    }

    @Test("From guest to signed in is a switch, and what the guest has queued can go along")
    func signingIn() async throws {
        try await withEmptyStore { store in
            let server = ScriptedServer.rating()
            let guest = try store.partition(of: backend("a"), server: server)
            #expect(try store.current()?.user == .guest)
            try await guest.enqueue(giveStars("1", 4))
            let change = try await store.switch(toUser: .user("ada"), pending: .carry, server: server)
            #expect(change.carried == 1 && change.left?.after.pending == 0 && change.entered.after.pending == 1)
            try await quickRunner(change.partition).drain()
            #expect(server.effects == ["1 4"])
        }
    }

    @Test("A parked partition's calls throw, its streams end, and it goes on when it is the current one again")
    func parked() async throws {
        try await withEmptyStore { store in
            let server = ScriptedServer { _ in recipeListAnswer }
            let a = try store.partition(of: backend("a"), server: server)
            try await a.write("Recipe:1", title, ["title": "Soup"])
            let prepared = try a.prepare("Recipe:1", title)
            var states = try a.watch("Recipe:1", title).makeAsyncIterator()
            var objects = a.watch("Recipe:1").makeAsyncIterator()
            _ = try await next(&states)
            _ = try await next(&objects)
            _ = try await store.switch(to: backend("b"))
            while try await next(&states) != nil {}
            while try await next(&objects) != nil {}
            let calls: [(String, () async throws -> Void)] = [
                ("read", { _ = try a.read("Recipe:1", title) }),
                ("prepared", { _ = try prepared.read() }),
                ("fetch", { _ = try await a.fetch(recipeList, policy: .networkOnly) }),
                ("cached", { _ = try await a.fetch(recipeList, policy: .cacheFirst) }),
                ("write", { try await a.write("Recipe:1", title, ["title": "Broth"]) }),
                ("update", { try await a.update("Recipe:1", title) { _ in } }),
                ("remove", { try await a.remove("Recipe:1", as: .evicted) }),
                ("clear", { try await a.clear() }),
                ("watch", { _ = try a.watch(recipeList) }),
                ("pages", { _ = try a.pages(recipeList, merger: PageMerger(elements: ["recipes"]) { _, _ in nil }) }),
                ("named", { _ = try await a.watch(named: "n", recipeList) }),
                ("queue", { try await a.enqueue(giveStars("1", 1)) }),
                ("send", { _ = try await a.send(giveStars("1", 1), within: .seconds(1)) }),
                ("run", { try await quickRunner(a).drain() }),
            ]
            for (name, call) in calls { #expect(await code(call) == "larder.parked", "\(name)") }
            #expect(try await next(&objects) == nil)
            #expect(server.requests.isEmpty)

            _ = try await store.switch(to: backend("a"))
            #expect(try a.read("Recipe:1", title)["title"]?.string == "Soup")
            var again = try a.watch("Recipe:1", title).makeAsyncIterator()
            #expect(try await next(&again)?.complete?["title"]?.string == "Soup")
            try await a.write("Recipe:1", title, ["title": "Broth"])
            #expect(try await next(&again)?.complete?["title"]?.string == "Broth")
        }
    }

    @Test("A parked partition gives no answer of its cache, also where a policy gives that first")
    func parkedAnswers() async throws {
        try await withEmptyStore { store in
            let a = try store.partition(of: backend("a"), server: ScriptedServer { _ in recipeListAnswer })
            _ = try await a.fetch(recipeList)
            _ = try await store.switch(to: backend("b"))
            var count = 0
            let failure = await code {
                for try await _ in a.fetches(recipeList, policy: .cacheAndNetwork) { count += 1 }
            }
            #expect(failure == "larder.parked" && count == 0)
        }
    }

    @Test("A runner that stands by ends when its partition is parked, also while the other's exchange goes on")
    func standingBy() async throws {
        let (isSent, isAnswered, hasAnswered) = (Flag(), Flag(), Flag())
        let server = ScriptedServer { _, request in
            isSent.set()
            await isAnswered.wait()
            hasAnswered.set()
            return ScriptedServer.done(request)
        }
        try await withEmptyStore { store in
            let app = try store.partition(of: backend("a"), server: server)
            try await app.enqueue(giveStars("1", 5))
            let working = Task { await code { try await quickRunner(app).run() } }
            await isSent.wait()
            let second = quickRunner(app)
            let standingBy = Task { await code { try await second.run() } }
            try await eventually { second.state == .standingBy }
            _ = try await store.switch(to: backend("b"))
            #expect(await standingBy.value == "larder.parked")
            #expect(!hasAnswered.isSet)
            isAnswered.set()
            #expect(await working.value == "larder.parked")
        }
    }

    @Test(
        "A late answer lands in its own partition, however many others were entered, and its caller is told of that",
        arguments: [1, 7])
    func lateFetch(others: Int) async throws {
        try await withEmptyStore { store in
            let (asked, answer) = (Flag(), Flag())
            let server = ScriptedServer { _ in
                asked.set()
                try await eventually { answer.isSet }
                return recipeListAnswer
            }
            let a = try store.partition(of: backend("a"), server: server)
            let fetching = Task { await code { _ = try await a.fetch(recipeList, policy: .networkOnly) } }
            try await eventually { asked.isSet }
            let first = try await store.switch(to: backend("b1")).partition
            var last = first
            for number in 1..<others { last = try await store.switch(to: backend("b\(number + 1)")).partition }
            answer.set()
            #expect(await fetching.value == "larder.parked")
            #expect(await code { _ = try last.read(recipeList) } == "larder.miss")
            let back = try await store.switch(to: backend("a")).partition
            #expect(try back.read(recipeList)["recipes"]?.count == 2)
        }
    }

    #if os(Linux)
    @Test("Many environments entered in turn keep the files of a few open, and each keeps its own objects")
    func manyEnvironments() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            var counts: [Int] = []
            var handles: [Partition] = []
            for number in 0..<40 {
                let app = try await store.switch(to: backend("e\(number)")).partition
                try await app.write("Recipe:1", title, ["title": .string("Soup \(number)")])
                handles.append(app)
                counts.append(try openFiles(below: folder).count)
            }
            #expect(counts[39] == counts[20] && counts[39] > 0, "\(counts)")
            // The current one's, and those of the last four that were left.
            #expect(Set(try openFiles(below: folder).filter { $0.hasSuffix("/data.mdb") }).count == 5)
            for number in [0, 39, 17] {
                let app = try await store.switch(to: backend("e\(number)")).partition
                #expect(try app.read("Recipe:1", title)["title"]?.string == "Soup \(number)")
                #expect(try handles[number].read("Recipe:1", title)["title"]?.string == "Soup \(number)")
            }
            #expect(try openFiles(below: folder).count == counts[39])
            try store.close()
            #expect(try openFiles(below: folder) == [])
            try expectSound(folder)
        }
    }
    #endif

    @Test("Where a cache cannot be marked as one that is to go, nothing is forgotten, and it can be tried again")
    func unmarked() async throws {
        try await withTemporaryFolder { folder in
            let isFailing = Flag()
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                isFailing.isSet && call.kind == .open && call.path.hasSuffix("/forgotten") ? .failure(EIO) : nil
            })
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            try await store.partition(of: backend("a")).write("Recipe:1", title, ["title": "Soup"])
            _ = try await store.switch(to: backend("b"))
            isFailing.set()
            #expect(await code { try await store.forget(environment: "a") } == "larder.notRemoved")
            #expect(try Set(store.partitionIdentities().map(\.environment)) == ["a", "b"])
            isFailing.set(false)
            try await store.forget(environment: "a")
            #expect(try store.partitionIdentities().map(\.environment) == ["b"])
            try store.close()
        }
    }

    @Test("A mutation that is answered late settles in its own partition; the runner there begins nothing more")
    func lateAnswer() async throws {
        try await withEmptyStore { store in
            let (asked, answer) = (Flag(), Flag())
            let server = ScriptedServer { _ in
                asked.set()
                try await eventually { answer.isSet }
                return rated("1", 5)
            }
            let a = try store.partition(of: backend("a"), server: server)
            let first = try await a.enqueue(giveStars("1", 5))
            let second = try await a.enqueue(giveStars("1", 6))
            let running = Task { await code { try await quickRunner(a).run() } }
            try await eventually { asked.isSet }
            _ = try await store.switch(to: backend("b"))
            answer.set()
            #expect(await running.value == "larder.parked")
            #expect(server.requests.count == 1)
            let back = try await store.switch(to: backend("a")).partition
            #expect(try back.mutation(first.id).status()?.state == .applied)
            #expect(try back.mutation(second.id).status()?.state == .pending)
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            #expect(try back.read("Recipe:1", rating)["rating"]?.double == 5)
        }
    }

    @Test("A switch made by another process ends streams and parks handles here, and the way back is noticed too")
    func otherProcess() async throws {
        try await withEmptyStore { store in
            let a = try store.partition(of: backend("a"))
            try await a.write("Recipe:1", title, ["title": "Soup"])
            var states = try a.watch("Recipe:1", title).makeAsyncIterator()
            _ = try await next(&states)
            var currents = try store.currentPartitions().makeAsyncIterator()
            #expect(try await next(&currents)??.environment == "a")
            // As it is in another process: a connection of its own.
            let other = try OperationsDatabase(folder: store.folder)
            try await other.environments.leave(.park, now: Date())
            await #expect(throws: LarderError.self) { try await a.enqueue(giveStars("1", 5)) }
            while try await next(&states) != nil {}
            #expect(await code { _ = try a.read("Recipe:1", title) } == "larder.parked")
            #expect(try await next(&currents) == .some(nil))
            #expect(await code { _ = try store.partition() } == "larder.noEnvironment")
            try await other.environments.enter(
                Destination(environment: .stored("a"), user: .last, newName: "unused"), leaving: nil, now: Date())
            #expect(try await next(&currents)??.environment == "a")
            #expect(try a.read("Recipe:1", title)["title"]?.string == "Soup")
            try other.close()
        }
    }

    @Test("Opening with another environment is an error, and a switch where the program said so")
    func opening() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            var store = try Store.open(at: folder, schema: schema)
            let a = try store.partition(of: backend("prototype"))
            try await a.enqueue(giveStars("1", 5))
            try store.close()

            store = try Store.open(at: folder, schema: schema)
            let refusal = await code { _ = try store.partition(of: backend("development")) }
            #expect(refusal == "operations.otherPartition")
            #expect(try store.current()?.environment == "prototype")
            let development = try store.partition(of: backend("development"), leaving: .park)
            #expect(try development.mutations().isEmpty)
            try store.close()

            store = try Store.open(at: folder, schema: schema)
            #expect(try store.partition(of: backend("development")).mutations().isEmpty)
            #expect(try store.partition().mutations().isEmpty)
            #expect(try store.partition(of: backend("prototype"), leaving: .park).mutations().count == 1)
            try store.close()
        }
    }

    @Test("A store whose program named no environment is taken over by the one that succeeds it")
    func unnamed() async throws {
        try await withEmptyStore { store in
            let before = try store.partition()
            try await before.write("Recipe:1", title, ["title": "Soup"])
            try await before.enqueue(giveStars("1", 5))
            let app = try store.partition(of: backend("a", succeeds: .unnamed))
            #expect(try app.read("Recipe:1", title)["title"]?.string == "Soup")
            #expect(try app.mutations().count == 1)
            #expect(try store.current()?.environment == "a")
        }
    }

    @Test("What a program that named no environment has only fetched is taken over as well")
    func unnamedCache() async throws {
        try await withEmptyStore { store in
            try await store.partition().write("Recipe:1", title, ["title": "Soup"])
            let app = try store.partition(of: backend("a", succeeds: .unnamed))
            #expect(try app.read("Recipe:1", title)["title"]?.string == "Soup")
        }
    }

    @Test("A switch to the environment and the user who are at work leaves nothing")
    func same() async throws {
        try await withEmptyStore { store in
            let first = try await store.switch(to: backend("a"))
            #expect(first.left == nil)
            try await first.partition.enqueue(giveStars("1", 5))
            let again = try await store.switch(to: backend("a"), pending: .park)
            #expect(again.left == nil && again.carried == 0 && again.discarded == 0)
            #expect(try again.partition.mutations().count == 1)
            #expect(try await store.switch(to: backend("b"), pending: .park).left?.after.pending == 1)
        }
    }

    @Test("The cache of a partition is stamped, and is not taken for another's")
    func stamped() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            var store = try Store.open(at: folder, schema: schema)
            let a = try store.partition(of: backend("a"))
            try await a.write("Recipe:1", title, ["title": "Soup"])
            _ = try await store.switch(to: backend("b"))
            let names = try store.partitionIdentities().map(\.name)
            try store.close()
            try #require(names.count == 2)
            // Somebody has put one in the other's place.
            let records = folder.appending(path: "records")
            try FileManager.default.removeItem(at: records.appending(path: names[1]))
            try FileManager.default.moveItem(
                at: records.appending(path: names[0]), to: records.appending(path: names[1]))
            store = try Store.open(at: folder, schema: schema)
            #expect(await code { _ = try store.partition(of: backend("b")) } == "records.otherPartition")
            try store.close()
        }
    }

    @Test("Switching, queueing and sending at once leaves every mutation where it was accepted, or carried")
    func storm() async throws {
        try await withEmptyStore { store in
            let server = ScriptedServer.rating()
            _ = try store.partition(of: backend("a"), server: server)
            let accepted = try await withThrowingTaskGroup(of: Int.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        var accepted = 0
                        for number in 0..<50 {
                            let name = ["a", "b"][(task + number) % 2]
                            do {
                                let app = try await store.switch(to: backend(name), server: server).partition
                                try await app.enqueue(giveStars("\(task)", number))
                                accepted += 1
                            } catch let error as LarderError where error.code == .parked {}
                        }
                        return accepted
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(accepted > 0)
            for name in ["a", "b"] {
                let app = try store.partition(of: backend(name), leaving: .park, server: server)
                try await quickRunner(app).drain()
            }
            #expect(server.effects.count == accepted)
        }
    }

    @Test("A switch tells how many mutations and transfers of each kind there are, and how many were given up")
    func counts() async throws {
        try await withEmptyStore { store in
            let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
            let a = try store.partition(of: backend("a"), server: server)
            try await a.enqueue(giveStars("1", 1))
            try await quickRunner(a).drain()
            let queue = try store.operationsDatabase().mutations
            // As a runner leaves them that is killed.
            for number in 0..<5 {
                let receipt = try await a.enqueue(giveStars("1", 2), options: .init(lane: .init("\(number)")))
                let begun = try await queue.begin(receipt.id.uuid, owner: "gone", now: Date())
                if number < 2 { try await queue.answer(begun.attempt, Array("{}".utf8), now: Date()) }
            }
            for _ in 0..<4 { try await a.enqueue(giveStars("1", 3)) }
            let file = store.folder.appending(path: "photo")
            try Data([1]).write(to: file)
            func upload(_ count: Int, expires: Date?) async throws {
                for number in 0..<count {
                    _ = try await a.transfers.upload(
                        file, to: .init(bucket: "b", key: "\(number)"), options: .init(expires: expires))
                }
            }
            try await upload(6, expires: Date(timeIntervalSinceNow: -1))
            try await TransferRunner(a, storage: MemoryStorage()).drain()
            try await upload(7, expires: nil)

            let change = try await store.switch(to: backend("b"))
            let left = try #require(change.left)
            #expect(left.before.setAside == 1 && left.before.inFlight == 3)
            #expect(left.before.answered == 2 && left.before.pending == 4)
            #expect(left.before.failedTransfers == 6 && left.before.transfers == 7)
            #expect(left.after == left.before && change.carriedTransfers == 0)
            let back = try await store.switch(to: backend("a"))
            #expect(back.entered.before == left.before)
            let last = try await store.switch(to: backend("b"), pending: .discard)
            #expect(last.discarded == 5 && last.discardedTransfers == 13 && last.left?.after.transfers == 0)
        }
    }

    @Test("The status of a session says whose it is")
    func owner() async throws {
        try await withEmptyStore { store in
            let app = try store.partition(of: backend("a"), user: .user("ada"))
            let identity = try app.session.status().identity
            #expect(identity.environment == "a" && identity.user == .user("ada"))
            #expect(try store.current() == identity)
        }
    }
}
