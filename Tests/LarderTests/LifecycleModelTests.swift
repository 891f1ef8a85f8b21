import Foundation
import LarderTestSupport
import Testing

@testable import Larder

/// Objects that refer to each other, and what needs them: what a cache does and what a model says that it does.
private struct LifecycleModel {
    static let schema = """
        type Query @fieldPolicy(forField: "node", keyArgs: ["id"]) { nodes(of: Int!): [Node!]! node(id: ID!): Node }
        type Node { id: ID! name: String next: Node }
        type Mutation { touch(id: ID!): Node }
        """

    static func list(_ number: Int) -> GraphQLOperation {
        GraphQLOperation("{ nodes(of: \(number)) { id name next { id name } } }")
    }

    static func node(_ id: Int) -> GraphQLOperation { GraphQLOperation("{ node(id: \(id)) { id name } }") }

    static func touch(_ id: Int) -> GraphQLOperation {
        GraphQLOperation("mutation Touch($id: ID!) { touch(id: $id) { id name } }", variables: ["id": .int(Int64(id))])
    }

    /// What each object refers to.
    var next: [Int: Int] = [:]
    var there: Set<Int> = []
    var lists: [Int: [Int]] = [:]
    var pins: [String: Int] = [:]
    var named: [String: Int] = [:]
    var watched: [Int] = []
    var queued: Set<Int> = []

    mutating func write(_ nodes: [(id: Int, next: Int)]) {
        for node in nodes {
            there.formUnion([node.id, node.next])
            next[node.id] = node.next
        }
    }

    /// What is needed and there.
    var needed: Set<Int> {
        var found: Set<Int> = []
        var rest = lists.values.flatMap { $0 } + pins.values + named.values + watched + queued
        while let id = rest.popLast() {
            guard there.contains(id), found.insert(id).inserted else { continue }
            if let next = next[id] { rest.append(next) }
        }
        return found
    }

    /// What lists that are there name, and what that refers to.
    var listed: Set<Int> {
        let ids = lists.values.flatMap { $0 }
        return Set(ids + ids.compactMap { next[$0] })
    }

    mutating func collect() {
        there = needed
        next = next.filter { there.contains($0.key) }
    }
}

@Suite("What stays and what goes, at random", .timeLimit(.minutes(10)))
struct LifecycleModelTests {
    private struct Run {
        let folder: URL
        var random: SeededNumbers
        var model = LifecycleModel()
        var store: Store
        var app: Partition
        var watches: [Watch] = []

        init(_ folder: URL, seed: UInt64) throws {
            self.folder = folder
            random = SeededNumbers(seed: seed)
            (store, app) = try Self.open(folder)
        }

        static func open(_ folder: URL) throws -> (Store, Partition) {
            let store = try Store.open(at: folder, schema: try Schema(parsing: LifecycleModel.schema))
            return (store, try store.partition())
        }

        mutating func number(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

        mutating func step() async throws {
            let id = number(60)
            switch number(16) {
            case 0...4: try await writeList()
            case 5, 6: try await writeNode(id)
            case 7:
                let list = number(3)
                model.lists[list] = nil
                try await app.remove(field: "nodes({\"of\":\(list)})")
            case 8:
                let name = "p\(number(3))"
                model.pins[name] = id
                try await app.pin(named: name, LifecycleModel.node(id))
            case 9:
                let name = "p\(number(3))"
                #expect(try await app.unpin(named: name) == (model.pins.removeValue(forKey: name) != nil))
            case 10:
                let name = "w\(number(2))"
                model.named[name] = id
                _ = try await app.watch(named: name, LifecycleModel.node(id))
            case 11:
                guard let name = model.named.keys.sorted().first else { return }
                model.named[name] = nil
                try await app.removeWatcher(named: name)
            case 12:
                model.watched.append(id)
                watches.append(try app.watch(LifecycleModel.node(id)))
            case 13:
                model.queued.insert(id)
                var options = MutationOptions()
                options.optimisticResponse = [
                    "touch": ["__typename": "Node", "id": .string("\(id)"), "name": "touched"]
                ]
                _ = try await app.enqueue(LifecycleModel.touch(id), options: options)
            case 14:
                guard number(4) == 0 else { return }
                (watches, model.watched) = ([], [])
                try store.close()
                (store, app) = try Self.open(folder)
            default:
                model.there.remove(id)
                model.next[id] = nil
                try await app.remove("Node:\(id)", as: .evicted)
            }
        }

        mutating func writeNode(_ id: Int) async throws {
            let fragment = GraphQLFragment("fragment F on Node { name next { id name } }")
            let next = number(60)
            model.write([(id, next)])
            try await app.write(
                "Node:\(id)", fragment,
                ["name": .string("n\(id)"), "next": ["id": .string("\(next)"), "name": .string("n\(next)")]])
        }

        mutating func writeList() async throws {
            let list = number(3)
            let nodes = (0..<number(6)).map { _ in (id: number(60), next: number(60)) }
            model.write(nodes)
            model.lists[list] = nodes.map(\.id)
            let data = nodes.map { node -> Value in
                [
                    "id": .string("\(node.id)"), "name": .string("n\(node.id)"),
                    "next": ["id": .string("\(node.next)"), "name": .string("n\(node.next)")],
                ]
            }
            try await app.write(LifecycleModel.list(list), ["nodes": .list(data)])
        }

        /// Takes over what is there: which garbage went before it was written again depends on chance.
        mutating func takeOver() throws {
            let fragment = GraphQLFragment("fragment F on Node { next { id } }")
            model.there = try there
            model.next = [:]
            for id in model.there {
                let next = try app.read("Node:\(id)", fragment, allowsPartial: true)["next"]?["id"]?.string
                if let next { model.next[id] = Int(next) }
            }
        }

        var there: Set<Int> {
            get throws { Set(try app.records.inspect.keys(type: "Node").compactMap { Int($0.dropFirst(5)) }) }
        }
    }

    @Test("After a collection exactly what is needed is there, whatever was written, pinned, watched and queued")
    func random() async throws {
        for index in 0..<6 {
            let seed = TestSeed.of("lifecycle model", index)
            try await withTemporaryFolder { folder in
                var run = try Run(folder, seed: seed)
                for round in 0..<12 {
                    for _ in 0..<20 { try await run.step() }
                    #expect(try run.there == run.model.there, "seed \(seed), round \(round)")
                    if run.number(2) == 0 {
                        // Others write meanwhile: what is needed stays, and more may.
                        let app = run.app
                        let collecting = Task { try await app.collectGarbage(sliceTime: .zero) }
                        for _ in 0..<10 { try await run.writeList() }
                        _ = try await collecting.value
                        #expect(try run.there.isSuperset(of: run.model.listed), "seed \(seed), round \(round)")
                        try run.takeOver()
                    }
                    _ = try await run.app.collectGarbage(sliceTime: run.number(2) == 0 ? .zero : .milliseconds(4))
                    run.model.collect()
                    #expect(try run.there == run.model.there, "seed \(seed), round \(round)")
                    #expect(try run.app.records.check().problems == [], "seed \(seed), round \(round)")
                }
                try run.store.close()
                try expectSound(folder)
            }
        }
    }
}

@Suite(
    "Collections that are killed", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct KilledCollectionTests {
    /// Starts a program once for each number of slices of its work, after which it is killed, and expects a sound store
    /// with all that is pinned.
    ///
    /// - Parameters:
    ///   - look: Checks the partition, opened again, after each kill.
    ///   - goOn: Works on the partition after the last kill.
    private func expectWhole(
        afterKilled work: String, slices: ClosedRange<Int>, seed: UInt64,
        sourceLocation: SourceLocation = #_sourceLocation, look: (Partition) throws -> Void = { _ in },
        goOn: (Partition) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let said = folder.appending(path: "said")
            let schema = try Schema(parsing: LifecycleModel.schema)
            var ends = 0
            for slice in slices {
                let child = try ChildProgram.start(place, work, "\(seed + UInt64(slice))", "\(slice)", output: said)
                await child.ended()
                let lines = try ChildProgram.lines(of: said)
                let pinned = try #require(
                    lines.first?.split(separator: " ").last.flatMap { Int($0) }, sourceLocation: sourceLocation)
                if lines.last == "done" { ends += 1 }
                let store = try Store.open(at: place, schema: schema)
                let app = try store.partition()
                let comment: Comment = "seed \(seed), slice \(slice)"
                #expect(try app.records.check().problems == [], comment, sourceLocation: sourceLocation)
                try look(app)
                let needed = GraphQLOperation("{ node(id: \(pinned)) { name next { name } } }")
                #expect(try app.read(needed).isComplete, comment, sourceLocation: sourceLocation)
                try store.close()
            }
            #expect(ends < 30, "hardly any was killed", sourceLocation: sourceLocation)
            let store = try Store.open(at: place, schema: schema)
            try await goOn(try store.partition())
            try store.close()
            try expectSound(place, sourceLocation: sourceLocation)
        }
    }

    @Test("A collection that is killed after any slice leaves all that is needed, and the next removes the rest")
    func killed() async throws {
        let seed = TestSeed.of("killed collection")
        try await expectWhole(afterKilled: "collect", slices: 1...60, seed: seed) { (app) throws in
            for list in 0..<2 { #expect(try app.read(LifecycleModel.list(list)).isComplete, "seed \(seed)") }
        } goOn: { (app) throws in
            _ = try await app.collectGarbage()
            #expect(try await app.collectGarbage().objects == 0)
        }
    }

    @Test("An eviction that is killed after any slice leaves what is pinned and a sound store, and the next goes on")
    func evicted() async throws {
        let seed = TestSeed.of("killed eviction")
        try await expectWhole(afterKilled: "evict", slices: 1...40, seed: seed) { (app) throws in
            #expect(await larderError { try await app.evict(maxBytes: 0) }?.code.rawValue == "records.full")
            let kept = try app.records.inspect.keys(type: "Node")
            #expect(kept.count == 1 || kept.count == 2, "\(kept)")
        }
    }
}
