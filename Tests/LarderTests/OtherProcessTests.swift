import Foundation
import LarderRecords
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

private let shelfSchema = """
    type Book { id: ID! title: String! pages: [Page!]! }
    type Page { text: String! }
    type Query { books: [Book!]! }
    """
private let shelf = GraphQLOperation("{ books { id title pages { text } } }")
private let oneBook = Array(#"{"books":[{"id":"1","title":"7","pages":[]}]}"#.utf8)

private func openShelf(_ folder: URL, waiting deadline: Duration = .seconds(300)) throws -> (Store, Partition) {
    var options = Store.Options()
    options.lockTimeout = deadline
    let store = try Store.open(at: folder, schema: try Schema(parsing: shelfSchema), options: options)
    return (store, try store.partition())
}

@Suite("Other processes", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"), .timeLimit(.minutes(10)))
struct OtherProcessTests {
    @Test("After kill -9 at any moment everything acknowledged is there and the check finds nothing")
    func killed() async throws {
        let seed = TestSeed.of("killed writer")
        try await withTemporaryFolder { folder in
            let said = folder.appending(path: "said")
            let place = folder.appending(path: "store")
            var before = 0
            for round in 0..<30 {
                let child = try ChildProgram.start(place, "count", "\(seed + UInt64(round))", output: said)
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...250)))
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
                try #require(
                    child.terminationReason == .uncaughtSignal, "seed \(seed), round \(round): it ended by itself")
                var (acknowledged, mayBeEmpty) = (before, before == 0)
                for line in try ChildProgram.lines(of: said) {
                    if line == "clearing" { mayBeEmpty = true }
                    guard let number = Int(line.dropFirst("wrote ".count)) else { continue }
                    (acknowledged, mayBeEmpty) = (number, false)
                }
                let (store, app) = try openShelf(place)
                #expect(try app.records.check().isSound, "seed \(seed), round \(round)")
                let answer = try app.read(shelf, allowsPartial: true)
                let titles = Set(answer["books"]?.elements.compactMap { $0["title"]?.string } ?? [])
                #expect(titles.count <= 1, "seed \(seed), round \(round): half a commit")
                before = titles.first.flatMap { Int($0) } ?? 0
                #expect(mayBeEmpty || before >= acknowledged, "seed \(seed), round \(round)")
                try store.close()
            }
        }
    }

    @Test("Processes that write, read, compact and clear side by side see whole commits and no errors")
    func together() async throws {
        try await withTemporaryFolder { folder in
            let children = try (1...3).map { try ChildProgram.start(folder, "churn", "\($0)", "60") }
            for child in children {
                await child.ended()
                #expect(child.terminationStatus == 0)
            }
            let (store, app) = try openShelf(folder)
            #expect(try app.records.check().isSound)
            try store.close()
        }
    }

    @Test(
        "Where another process has cleared the cache, observers hear that everything may be different, once and first",
        arguments: [true, false])
    func cleared(isReadFirst: Bool) async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try openShelf(folder)
            try await app.write(shelf, json: oneBook)
            let told = Mutex<[Bool]>([])
            app.core.cache.observe { commit in told.withLock { $0.append(commit.changes.isEverything) } }
            _ = try await ChildProgram.run(folder, "clear")
            if isReadFirst {
                _ = try app.read(shelf, allowsPartial: true)
                try await eventually { told.withLock { !$0.isEmpty } }
            }
            try await app.write(shelf, json: oneBook)
            // So after a clearing of its own.
            _ = try await app.records.clear()
            try await app.write(shelf, json: oneBook)
            try await app.write(shelf, json: Array(#"{"books":[{"id":"1","title":"8","pages":[]}]}"#.utf8))
            try await eventually { told.withLock { $0.count >= 5 } }
            #expect(told.withLock { $0 } == [true, false, true, false, false])
            try store.close()
        }
    }

    #if os(Linux)
    @Test("A process that has little address space works on a store beside one that has all that it wants")
    func littleAddressSpace() async throws {
        try await withTemporaryFolder { folder in
            let children = try [4 << 20, nil].map { addressSpace in
                try ChildProgram.start(folder, ["churn", "1", "40"], addressSpace: addressSpace)
            }
            for child in children {
                await child.ended()
                #expect(child.terminationReason == .exit)
                #expect(child.terminationStatus == 0)
            }
            let (store, app) = try openShelf(folder)
            #expect(try app.records.check().isSound)
            try store.close()
        }
    }

    @Test("Where address space is limited, the map takes a quarter of what can be had", arguments: [8, 16])
    func mapUnderLimit(gibibytes: Int) async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try openShelf(folder.appending(path: "store"))
            try await app.write(shelf, json: oneBook)
            try store.close()
            let said = folder.appending(path: "said")
            let child = try ChildProgram.start(
                folder.appending(path: "store"), ["stop"], output: said, addressSpace: gibibytes << 20)
            defer {
                kill(child.processIdentifier, SIGKILL)
                child.waitUntilExit()
            }
            try await eventually { try !ChildProgram.lines(of: said).isEmpty }
            let maps = try String(contentsOfFile: "/proc/\(child.processIdentifier)/maps", encoding: .utf8)
            let ranges = maps.split(separator: "\n").filter { $0.hasSuffix("/data.mdb") }.map { line in
                line.prefix { $0 != " " }.split(separator: "-").compactMap { Int($0, radix: 16) }
            }
            let size = ranges.reduce(0) { $0 + $1[1] - $1[0] }
            let status = try String(contentsOfFile: "/proc/\(child.processIdentifier)/status", encoding: .utf8)
            let taken = try #require(status.firstMatch(of: /VmSize:\s+(\d+) kB/).flatMap { Int($0.1) }) << 10
            let free = gibibytes << 30 - (taken - size)
            // By halves what there is is met to within a half.
            #expect(size <= free / 4 && size > free / 8, "\(size) of \(free)")
        }
    }
    #endif

    @Test("A write waits for another process as long as its store's options say, less than by default or more")
    func ownTimeout() async throws {
        try await withTemporaryFolder { folder in
            let places = ["hasty", "patient"].map { folder.appending(path: $0) }
            let (hastyStore, hasty) = try openShelf(places[0], waiting: .milliseconds(100))
            let (patientStore, patient) = try openShelf(places[1], waiting: .seconds(300))
            for app in [hasty, patient] { try await app.write(shelf, json: oneBook) }
            var children: [Process] = []
            defer {
                for child in children {
                    kill(child.processIdentifier, SIGKILL)
                    child.waitUntilExit()
                }
            }
            for place in places {
                let said = folder.appending(path: "\(place.lastPathComponent) said")
                children.append(try ChildProgram.start(place, "stop", output: said))
                try await eventually { try !ChildProgram.lines(of: said).isEmpty }
            }
            let waiting = Task { try await patient.write(shelf, json: Array(#"{"books":[]}"#.utf8)) }
            // Had both stores the same patience, the other write would give up before the second of these.
            for _ in 0..<2 {
                let error = await #expect(throws: LarderError.self) { try await hasty.write(shelf, json: oneBook) }
                #expect(error?.code.rawValue == "records.busy")
            }
            for child in children {
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
            }
            try await waiting.value
            #expect(try patient.read(shelf)["books"]?.count == 0)
            try hastyStore.close()
            try patientStore.close()
        }
    }

    @Test("A writer that was stopped inside a write is named by the error of the next, and reading goes on")
    func stopped() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try openShelf(folder.appending(path: "store"), waiting: .milliseconds(200))
            try await app.write(shelf, json: oneBook)
            let said = folder.appending(path: "said")
            let child = try ChildProgram.start(folder.appending(path: "store"), "stop", output: said)
            defer {
                kill(child.processIdentifier, SIGKILL)
                child.waitUntilExit()
            }
            try await eventually { try !ChildProgram.lines(of: said).isEmpty }
            let error =
                try await requireEnd(after: .milliseconds(200), naming: "pid \(child.processIdentifier)") { _ in
                    try await app.write(shelf, json: Array(#"{"books":[]}"#.utf8))
                } as? LarderError
            #expect(error?.code.rawValue == "records.busy")
            #expect(try app.read(shelf)["books"]?.count == 1)
            kill(child.processIdentifier, SIGKILL)
            await child.ended()
            try await app.write(shelf, json: Array(#"{"books":[]}"#.utf8))
            #expect(try app.read(shelf)["books"]?.count == 0)
            try store.close()
        }
    }

    @Test("A watcher hears of an object that another process stores for the first time")
    func created() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try openShelf(folder)
            var states = try app.watch("Book:1", GraphQLFragment("fragment F on Book { title }")).makeAsyncIterator()
            #expect(try await next(&states)?.complete == nil)
            // By its seed it writes the shelf once.
            _ = try await ChildProgram.run(folder, "churn", "7", "1")
            #expect(try await next(&states, within: .seconds(60))?.complete?["title"] != nil)
            try store.close()
        }
    }

    @Test("A watcher of a whole object by its key hears of it when another process stores it")
    func createdObject() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try openShelf(folder)
            var states = app.watch("Book:1").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .absent)
            // With these arguments the child process writes the shelf once.
            _ = try await ChildProgram.run(folder, "churn", "7", "1")
            #expect(try await next(&states, within: .seconds(20))?.presence == .present)
            try store.close()
        }
    }

    @Test("A watcher hears of this process's writes after another process has cleared the cache")
    func clearedByAnother() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try openShelf(folder)
            try await app.write(shelf, json: oneBook)
            var states = try app.watch(shelf).makeAsyncIterator()
            #expect(try await next(&states)?.complete?["books"]?[0]?["title"]?.string == "7")
            let child = try ChildProgram.start(folder, "clear")
            await child.ended()
            try await app.write(shelf, json: Array(#"{"books":[{"id":"1","title":"8","pages":[]}]}"#.utf8))
            var title: String?
            while title != "8" { title = try await next(&states)?.complete?["books"]?[0]?["title"]?.string }
            try store.close()
        }
    }

    @Test("A watcher of a list hears of the pages that another process loads")
    func loadedPages() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "orders", paginationArgs: "limit nextToken") {
              orders(limit: Int, nextToken: String): OrderList
            }
            type Order { id: ID! }
            type OrderList { items: [Order] nextToken: String }
            """
        let list = GraphQLOperation(
            "query L($limit: Int, $nextToken: String) { orders(limit: $limit, nextToken: $nextToken) "
                + "{ items { id } nextToken } }")
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
            var states = try store.partition().pages(list).watch(.whenComplete).makeAsyncIterator()
            // The child process loads eight pages of ten, and would kill itself after a thousand steps.
            _ = try await ChildProgram.run(folder, "pages", "1000")
            #expect(try await next(&states, within: .seconds(60))?.objects.count == 80)
            try store.close()
        }
    }
}
