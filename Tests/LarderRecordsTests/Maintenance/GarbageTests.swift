import Foundation
import LarderFiles
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

/// What a test says that is needed.
final class StatedRoots: CollectionRoots {
    private let all = Locked<[Dependencies]>([])
    private let new = Locked<[Dependencies]>([])

    init(_ all: [Dependencies] = []) { self.all.withLock { $0 = all } }

    func watch(_ dependencies: Dependencies) { new.withLock { $0.append(dependencies) } }

    func needed(fromStart: Bool) -> [Dependencies] { all.withLock { $0 } }

    func newlyWatched() -> [Dependencies] {
        new.withLock { new in
            defer { new = [] }
            return new
        }
    }
}

private let nodeSchema = """
    type Query @fieldPolicy(forField: "node", keyArgs: ["id"]) { node(id: ID!): Node nodes(of: String): [Node] }
    type Node { id: ID! name: String next: Node notes: [Note] }
    type Note { text: String about: Node }
    """

extension SampleCache {
    fileprivate static let nodes = """
        query N($of: String) { nodes(of: $of) { __typename id name next { __typename id } notes { text about { id } } } }
        """

    /// Stores nodes under a field of the root, each with a note about the next.
    fileprivate func link(_ ids: [Int], next: [Int: Int] = [:], of list: String = "a") async throws {
        let nodes = ids.map { id in
            let other = next[id].map { #"{"__typename":"Node","id":"\#($0)"}"# } ?? "null"
            return #"""
                {"__typename":"Node","id":"\#(id)","name":"n\#(id)","next":\#(other),
                "notes":[{"text":"t","about":\#(other)}]}
                """#
        }
        try await write(
            operation(Self.nodes, ["of": .string(list)]),
            response: "{\"data\":{\"nodes\":[\(nodes.joined(separator: ","))]}}")
    }

    fileprivate var keys: [String] { get throws { try cache.inspect.keys(includingTombstones: true) } }

    fileprivate func collect(_ roots: StatedRoots = .init(), isRehearsal: Bool = false) async throws -> GarbageReport {
        try await cache.collectGarbage(keeping: roots, isRehearsal: isRehearsal)
    }

    fileprivate func collection(_ roots: StatedRoots = .init()) throws -> GarbageCollection {
        let collection = GarbageCollection(keeping: roots, under: cache.layers, sliceTime: .seconds(10))
        #expect(try collection.mark(in: cache.generations) == .done)
        return collection
    }

    /// Proposes objects to a collection, as if it had found them.
    fileprivate func remove(_ names: [String], _ collection: GarbageCollection) async throws {
        let ids = try names.map { name in
            try cache.generations.withSnapshot { generation, transaction in
                try #require(try generation.tables.record(of: name, transaction))
            }
        }
        collection.propose(ids.map { .object($0) }[...])
        collection.committed(try await cache.write([.collect(collection)], deadline: nil))
    }
}

@Suite("Collecting garbage", .timeLimit(.minutes(10)))
struct GarbageTests {
    @Test("What the root leads to stays; all else goes, in circles or not, with its parts and its keys")
    func orphans() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3, 4], next: [1: 5, 2: 3, 3: 2, 4: 4])
            try await sample.link([1], next: [1: 5])
            #expect(try sample.keys == ["Node:1", "Node:2", "Node:3", "Node:4", "Node:5", "QUERY_ROOT"])
            let rehearsal = try await sample.collect(isRehearsal: true)
            #expect(try sample.keys.count == 6)
            let report = try await sample.collect()
            #expect(report == rehearsal)
            #expect((report.objects, report.parts, report.keys) == (3, 3, 3))
            #expect(report.kept == 4)
            #expect(report.bytes > 0)
            #expect(try sample.keys == ["Node:1", "Node:5", "QUERY_ROOT"])
            #expect(try sample.cache.inspect.statistics().entries(of: "keys") == 3)
            try expectSound(sample.cache)
            let second = try await sample.collect()
            #expect((second.objects, second.parts, second.keys, second.bytes) == (0, 0, 0, 0))
            // The object is unknown, and its key stays: Node:1 refers to it.
            try await sample.changing { try await $0.remove(keys: ["Node:5"], as: .evicted) }
            #expect(try await sample.collect().keys == 0)
            try expectSound(sample.cache)
        }
    }

    @Test("After an unclean close, beside another process that writes, what nothing leads to goes all the same")
    func afterUncleanClose() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3])
            try await sample.link([1])
            let generation = sample.cache.generations.current
            generation.mayHaveLostCommits.store(true, ordering: .relaxed)
            let report = try await sample.cache.collectGarbage(keeping: StatedRoots()) { _ in
                // As another process does, which has begun its epoch.
                #expect(throws: Never.self) {
                    var other = try generation.environment.beginWrite(deadline: .now + .seconds(300))
                    try GenerationState.stored(other, generation.tables).store(&other, generation.tables)
                    try other.commit()
                }
            }
            #expect((report.objects, report.restarts) == (2, 0))
            #expect(try sample.keys == ["Node:1", "QUERY_ROOT"])
            try expectSound(sample.cache)
        }
    }

    @Test("What is told on the way counts the objects and the keys that are gone")
    func progress() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3])
            try await sample.link([1])
            let told = Mutex<[GarbageProgress]>([])
            let report = try await sample.cache.collectGarbage(keeping: StatedRoots()) { progress in
                told.withLock { $0.append(progress) }
            }
            #expect((report.objects, report.keys, report.isFinished) == (2, 2, true))
            #expect(told.withLock { $0.first?.removed } == 0)
            #expect(told.withLock { $0.last?.removed } == 4)
        }
    }

    @Test("A collection whose task is cancelled says that it is not finished, and what it did not come to stays")
    func cancelled() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3])
            try await sample.link([1])
            let cache = sample.cache
            let collecting = Task {
                try await cache.collectGarbage(keeping: StatedRoots()) { _ in
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            let report = try await collecting.value
            #expect((report.objects, report.isFinished) == (0, false))
            #expect(try sample.keys.count == 4)
        }
    }

    @Test("A collection that is cancelled while it removes says what is gone, and another one goes on from there")
    func cancelledOnTheWay() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link(Array(1...400))
            try await sample.link([1])
            let cache = sample.cache
            let collecting = Task {
                try await cache.collectGarbage(keeping: StatedRoots()) { progress in
                    if progress.removed > 0 { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            let report = try await collecting.value
            #expect((1..<399).contains(report.objects))
            #expect((report.restarts, report.isFinished) == (0, false))
            #expect(try await sample.collect().objects == 399 - report.objects)
        }
    }

    @Test("Reports of collections that follow each other are added up, and the last says what stays")
    func addedReports() {
        var (first, later) = (GarbageReport(), GarbageReport())
        (first.objects, first.restarts, first.kept, first.isFinished) = (1, 2, 9, true)
        (later.objects, later.restarts, later.kept) = (10, 3, 5)
        first.add(later)
        #expect((first.objects, first.restarts, first.kept, first.isFinished) == (11, 5, 5, false))
    }

    @Test("What waits for an object by its key keeps the object that has come since")
    func waiting() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1])
            let waiting = try sample.cache.read(sample.operation("{ node(id: 2) { name } }")).dependencies
            try await sample.link([1, 2])
            try await sample.link([1])
            #expect(try await sample.collect(StatedRoots([waiting])).objects == 0)
            #expect(try sample.keys.contains("Node:2"))
        }
    }

    @Test("An object that comes again after its key has gone is found, and wakes what waits for its key")
    func comingBack() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2])
            try await sample.link([1])
            let waiting = try sample.operation("{ node(id: 2) { name } }")
            let before = try sample.cache.read(waiting)
            let record = try #require(before.dependencies.records.last)
            let position = try sample.cache.position
            _ = try await sample.collect()
            guard case .changes(let changes) = try sample.cache.changes(since: position) else {
                Issue.record("the log does not tell what went")
                return
            }
            #expect(changes.contains { $0.set.fields.contains(RecordField(record: record, field: RecordField.any)) })
            let after = try sample.cache.read(waiting)
            #expect(after.absentKeys == ["Node:2"])
            try await sample.link([2], of: "b")
            #expect(try sample.json("{ node(id: 2) { name } }") == #"{"node":{"name":"n2"}}"#)
            try expectSound(sample.cache)
        }
    }

    @Test("What is needed stays, with all that it leads to")
    func needed() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3, 4], next: [2: 3])
            let answer = try sample.cache.read(sample.operation("{ node(id: 2) { name } }"))
            try await sample.link([1])
            let report = try await sample.collect(StatedRoots([answer.dependencies]))
            #expect(report.objects == 1)
            #expect(try sample.keys == ["Node:1", "Node:2", "Node:3", "QUERY_ROOT"])
        }
    }

    @Test("What a queued mutation reads or writes stays, also if it was queued after marking")
    func layers() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3, 4])
            try await sample.link([1])
            func layer(_ id: Int) throws -> OptimisticLayer {
                OptimisticLayer(key: try #require(AppliedKey("m\(id)")), removals: ["Node:\(id)"])
            }
            sample.cache.replaceLayers([try layer(2)])
            let collection = try sample.collection()
            sample.cache.replaceLayers([try layer(2), try layer(3)])
            try await sample.remove(["Node:2", "Node:3", "Node:4"], collection)
            #expect(collection.outcome == .done)
            sample.cache.replaceLayers([])
            #expect(try sample.keys == ["Node:1", "Node:2", "Node:3", "QUERY_ROOT"])
        }
    }

    @Test("What becomes reachable after marking stays, with all that it leads to")
    func reachedLater() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3, 4, 5], next: [2: 3, 3: 4])
            try await sample.link([1])
            let collection = try sample.collection()
            // Only the object that refers to it now is changed.
            try await sample.write(
                "{ nodes(of: \"b\") { __typename id } }", data: #"{"nodes":[{"__typename":"Node","id":"2"}]}"#)
            try await sample.remove(["Node:2", "Node:3", "Node:4", "Node:5"], collection)
            #expect(collection.outcome == .done)
            #expect(try sample.keys == ["Node:1", "Node:2", "Node:3", "Node:4", "QUERY_ROOT"])
        }
    }

    @Test(
        "What a new or changed field of a root of many fields leads to stays, and the field alone is looked into",
        arguments: [64, 65, 200])
    func reachedLaterFromMany(lists: Int) async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3, 4, 5, 6, 7], next: [2: 3, 6: 7])
            try await sample.link([1])
            for list in 1..<lists { try await sample.link([1], of: "\(list)") }
            let collection = try sample.collection()
            func list(_ name: String, _ id: Int) async throws {
                try await sample.write(
                    "{ nodes(of: \"\(name)\") { __typename id } }",
                    data: #"{"nodes":[{"__typename":"Node","id":"\#(id)"}]}"#)
            }
            try await list("new", 2)
            try await sample.remove(["Node:2", "Node:3", "Node:4"], collection)
            #expect(collection.outcome == .done)
            #expect(collection.uncertain.isEmpty, "what was looked into in a commit is not looked into again")
            #expect(try sample.keys == ["Node:1", "Node:2", "Node:3", "Node:5", "Node:6", "Node:7", "QUERY_ROOT"])
            try await list("1", 6)
            try await sample.remove(["Node:5", "Node:6", "Node:7"], collection)
            #expect(try sample.keys == ["Node:1", "Node:2", "Node:3", "Node:6", "Node:7", "QUERY_ROOT"])
        }
    }

    @Test("What a watcher comes to need after marking stays")
    func watchedLater() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3])
            try await sample.link([1])
            let roots = StatedRoots()
            let collection = try sample.collection(roots)
            roots.watch(try sample.cache.read(sample.operation("{ node(id: 2) { name } }")).dependencies)
            try await sample.remove(["Node:2", "Node:3"], collection)
            #expect(try sample.keys == ["Node:1", "Node:2", "QUERY_ROOT"])
        }
    }

    @Test("An object that was written while a collection goes on stays, whether it is needed or not")
    func writtenMeanwhile() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2])
            try await sample.link([1])
            let collection = try sample.collection()
            try await sample.write(
                sample.fragment("fragment F on Node { name }"), response: #"{"data":{"name":"other"}}"#,
                to: .object(key: "Node:2"))
            try await sample.remove(["Node:2"], collection)
            #expect(try sample.keys.contains("Node:2"))
            #expect(try await sample.collect().objects == 1)
        }
    }

    @Test("Nothing goes where the log does not tell what was changed since: the collection begins again")
    func cutLog() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2])
            try await sample.link([1])
            let collection = try sample.collection()
            for number in 0...Int(RecordChanges.logLength) {
                _ = try await sample.cache.write(
                    .parse(
                        Array(#"{"data":{"node":{"__typename":"Node","id":"1","name":"\#(number)"}}}"#.utf8),
                        along: sample.operation("{ node(id: 1) { __typename id name } }").layout),
                    of: sample.operation("{ node(id: 1) { __typename id name } }"))
            }
            try await sample.remove(["Node:2"], collection)
            #expect(collection.outcome == .outdated)
            #expect(try sample.keys.contains("Node:2"))
            collection.startOver()
            #expect(try collection.mark(in: sample.cache.generations) == .done)
            try await sample.remove(["Node:2"], collection)
            #expect(try !sample.keys.contains("Node:2"))
        }
    }

    @Test("Clearing and compacting while a collection goes on lead it astray in nothing")
    func otherGenerations() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2, 3])
            try await sample.link([1])
            let collection = try sample.collection()
            try await sample.cache.compact()
            try await sample.remove(["Node:2"], collection)
            #expect(try sample.keys == ["Node:1", "Node:3", "QUERY_ROOT"])
            try await sample.cache.clear()
            try await sample.link([7, 8, 9])
            try await sample.remove(["Node:8"], collection)
            #expect(collection.outcome == .outdated)
            #expect(try sample.keys == ["Node:7", "Node:8", "Node:9", "QUERY_ROOT"])
        }
    }

    @Test("A collection that is outrun again and again gives up, and one that is outrun a few times goes on")
    func outrun() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2])
            try await sample.link([1])
            let generation = sample.cache.generations.current
            for (times, isOver) in [(100, true), (3, false)] {
                let calls = Mutex(0)
                do throws(RecordError) {
                    let report = try await sample.cache.collectGarbage(keeping: StatedRoots()) { _ in
                        let count = calls.withLock { calls in
                            calls += 1
                            return calls
                        }
                        guard count <= times else { return }
                        // What was noted of changes tells nothing any more.
                        try? generation.environment.write(deadline: .now + .seconds(300)) { transaction in
                            var state = try GenerationState.stored(transaction, generation.tables)
                            state.startEpoch()
                            try state.store(&transaction, generation.tables)
                        }
                    }
                    #expect(!isOver)
                    #expect((report.objects, report.restarts) == (1, times))
                } catch {
                    #expect(isOver)
                    #expect(error.code == .busy)
                    // The first round, and sixteen more.
                    #expect(calls.withLock { $0 } == 17)
                }
                #expect(try sample.keys == ["Node:1"] + (isOver ? ["Node:2"] : []) + ["QUERY_ROOT"])
            }
        }
    }

    @Test("What was looked into in a write that was not made is looked into again")
    func lookedIntoInVain() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 4, 6, 7], next: [4: 6])
            try await sample.link([1])
            let collection = try sample.collection()
            try await sample.link([1], next: [1: 4])
            let generation = sample.cache.generations.current
            func number(_ name: String, _ transaction: borrowing WriteTransaction) throws -> RecordID {
                try #require(try generation.tables.record(of: name, transaction))
            }
            func removeInVain() throws {
                var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
                // Here the object that became reachable leads nowhere.
                var changes = RecordChanges(try GenerationState.stored(transaction, generation.tables))
                _ = try changes.removeEntity(
                    number("Node:4", transaction), leavingTombstone: true, generation, transaction)
                try changes.store(generation, &transaction)
                var removal = RecordChanges(changes.state)
                collection.propose([.object(try number("Node:7", transaction))])
                try collection.remove(from: generation, transaction, &removal)
                #expect(collection.outcome == .done)
                #expect(!collection.uncertain.isEmpty)
            }
            try removeInVain()
            try await sample.remove(["Node:6", "Node:7"], collection)
            #expect(collection.outcome == .done)
            #expect(try sample.keys == ["Node:1", "Node:4", "Node:6", "QUERY_ROOT"])
        }
    }

    @Test("After an unclean close, whose next commit starts an epoch, garbage is collected as ever")
    func afterCrash() async throws {
        try await withTemporaryFolder { folder in
            let schema = try SchemaIndex(parsing: nodeSchema)
            let (live, copy) = (folder.appending(path: "live"), folder.appending(path: "copy"))
            let sample = try SampleCache(schema, path: live.path)
            try await sample.link([1, 2, 3])
            try await sample.link([1])
            try crashCopy(of: live, to: copy)
            try sample.cache.close()
            let crashed = try SampleCache(schema, path: copy.path)
            let report = try await crashed.collect()
            #expect((report.objects, report.restarts) == (2, 0))
            #expect(try crashed.keys == ["Node:1", "QUERY_ROOT"])
            try expectSound(crashed.cache)
            try crashed.cache.close()
        }
    }

    @Test("A snapshot that was taken before keeps what goes")
    func snapshots() async throws {
        try await withSampleCache(nodeSchema) { sample in
            try await sample.link([1, 2])
            try await sample.link([1])
            let cache = sample.cache
            let generation = cache.generations.current
            let transaction = try generation.environment.beginRead()
            _ = try await sample.collect()
            let id = try #require(try generation.tables.record(of: "Node:2", transaction))
            #expect(try generation.record(id, transaction) != nil)
        }
    }

    @Test("Objects with many fields go with all of them, and so do tombstones that nothing refers to")
    func splitRecordsAndTombstones() async throws {
        let schema = "type Query { wide(n: Int): Wide } type Wide { id: ID! \(ManyFields.declared) other: Wide }"
        try await withSampleCache(schema) { sample in
            let (all, values) = (ManyFields.selected, ManyFields.values)
            let query = "query Q($n: Int) { wide(n: $n) { __typename id \(all) other { __typename id } } }"
            for (id, other) in [(1, 2), (3, 4)] {
                let reference = #"{"__typename":"Wide","id":"\#(other)"}"#
                try await sample.write(
                    query, ["n": .int(Int64(id))],
                    data: #"{"wide":{"__typename":"Wide","id":"\#(id)",\#(values),"other":\#(reference)}}"#)
            }
            try await sample.changing { try await $0.remove(keys: ["Wide:2", "Wide:4"], as: .deleted) }
            try await sample.changing { try await $0.remove(field: "wide({\"n\":1})", of: "QUERY_ROOT") }
            let rehearsal = try await sample.collect(isRehearsal: true)
            let report = try await sample.collect()
            #expect(report == rehearsal)
            #expect((report.objects, report.keys) == (2, 2))
            #expect(try sample.keys == ["QUERY_ROOT", "Wide:3", "Wide:4"])
            #expect(try sample.json(query, ["n": 3]).contains(#""f69":69,"other":null"#))
            #expect(try sample.cache.inspect.statistics().entries(of: "fields") == 72)
        }
    }
}

extension CacheStatistics {
    fileprivate func entries(of table: String) -> Int { tables.first { $0.name == table }?.entries ?? 0 }
}
