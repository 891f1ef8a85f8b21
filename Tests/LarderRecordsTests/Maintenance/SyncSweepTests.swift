import Dispatch
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Removal of what a walk through everything did not have", .timeLimit(.minutes(5)))
struct SyncSweepTests {
    private static let schema = """
        scalar AWSTimestamp
        type Query { todos: [Todo] other: [Todone] }
        type Todo @typePolicy(versioned: true) {
          id: ID! _version: Int _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        type Todone @typePolicy(versioned: true) {
          id: ID! _version: Int _deleted: Boolean _lastChangedAt: AWSTimestamp
        }
        """

    private func list(_ type: String, _ ids: Range<Int>) -> String {
        let items = ids.map {
            #"{"__typename":"\#(type)","id":"\#($0)","_version":1,"_deleted":null,"_lastChangedAt":5}"#
        }
        return "[\(items.joined(separator: ","))]"
    }

    /// A cache with objects of two types, and a walk that has reached its end.
    private func swept(
        _ position: SyncPosition, _ body: (RecordCache, SyncPosition) async throws -> Void
    ) async throws {
        try await withSampleCache(Self.schema) { sample in
            let document = "{ todos { id } other { id } }"
            _ = try await sample.write(
                document, data: #"{"todos":\#(list("Todo", 0..<100)),"other":\#(list("Todone", 0..<100))}"#)
            let bound = try sample.operation("{ todos { id } }")
            let page = try ParsedResponse.parse(
                Array(#"{"data":{"todos":\#(list("Todo", 0..<10))}}"#.utf8), along: bound.layout)
            let end = SyncPage(key: "ab", position: position, after: nil, number: 0, mark: SyncMark(page))
            try await sample.cache.write(page, of: bound, as: end)
            try await body(sample.cache, position)
        }
    }

    private func operation(_ text: String) throws -> BoundOperation {
        let schema = try SchemaIndex(parsing: Self.schema)
        return try CompiledOperation(operation: nil, in: Document(parsing: text), schema).bound([:])
    }

    private func count(_ cache: RecordCache, _ type: String) throws -> Int {
        try (0..<100).count { try cache.version(of: "\(type):\($0)") != nil }
    }

    private var begun: SyncPosition {
        var position = SyncPosition(name: "todos", types: ["Todone", "Todo"], startedAt: 10)
        position.sweep = .init(changedBefore: 8)
        return position
    }

    @Test("A walk under way is given up with its marks where objects of its types are evicted, the first one too")
    func evictedMeanwhile() async throws {
        var first = SyncPosition(name: "todos", types: ["Todo"])
        first.walk = .init(since: nil, startedAt: 10, token: "t", pageCount: 1)
        var later = first
        later.startedAt = 5
        for position in [first, later] {
            try await swept(position) { cache, position in
                func marks() throws -> Int {
                    try cache.generations.withSnapshot { generation, transaction in
                        try generation.tables.marks(of: "ab", transaction).count
                    }
                }
                #expect(try cache.positions()["ab"] == position)
                #expect(try marks() == 1)
                _ = try await cache.remove(keys: ["Todone:1"], as: .evicted)
                #expect(try cache.positions()["ab"] == position)
                _ = try await cache.remove(keys: ["Todo:1"], as: .evicted)
                #expect(try cache.positions()["ab"] == SyncPosition(name: "todos", types: ["Todo"]))
                #expect(try marks() == 0)
            }
        }
    }

    @Test("A removal that goes on is given up where objects of its types are evicted: everything is asked for anew")
    func evictedWhileSweeping() async throws {
        try await swept(begun) { cache, position in
            _ = try await cache.remove(keys: ["Todo:1"], as: .evicted)
            #expect(try cache.position(of: "ab") == SyncPosition(name: position.name, types: position.types))
            #expect(try cache.walkedKeys(of: "ab").count == 0)
        }
    }

    @Test("The first page of a walk removes the marks of one that was given up, and later pages add theirs")
    func begunAnew() async throws {
        try await swept(begun) { cache, position in
            let bound = try operation("{ todos { id } }")
            var after = position
            func page(_ number: Int, _ ids: Range<Int>) async throws -> Int {
                let parsed = try ParsedResponse.parse(
                    Array(#"{"data":{"todos":\#(list("Todo", ids))}}"#.utf8), along: bound.layout)
                let end = SyncPage(
                    key: "ab", position: position, after: after, number: number, mark: SyncMark(parsed))
                try await cache.write(parsed, of: bound, as: end)
                after = position
                return try cache.walkedKeys(of: "ab").count
            }
            #expect(try await page(1, 10..<20) == 20)
            #expect(try await page(2, 20..<30) == 30)
            #expect(try await page(0, 0..<5) == 5)
        }
    }

    @Test("A page that goes on from where the walk is no more is refused, and nothing of it is stored")
    func moved() async throws {
        try await swept(begun) { cache, position in
            let bound = try operation("{ todos { id } }")
            let page = try ParsedResponse.parse(
                Array(#"{"data":{"todos":\#(list("Todo", 200..<210))}}"#.utf8), along: bound.layout)
            var other = position
            other.startedAt = 11
            for (key, after) in [("ab", nil), ("ab", other), ("cd", position)] as [(String, SyncPosition?)] {
                let end = SyncPage(
                    key: key, position: other, after: after, number: 0, mark: SyncMark(page))
                let error = await #expect(throws: RecordError.self) { try await cache.write(page, of: bound, as: end) }
                #expect(error?.code == .busy)
            }
            #expect(try cache.version(of: "Todo:200") == nil)
            #expect(try cache.position(of: "ab") == position)
        }
    }

    @Test("A synchronization of which nothing was heard for long is forgotten with the marks of its walk")
    func forgotten() async throws {
        var position = begun
        position.lastUsed = 1_000
        try await swept(position) { cache, position in
            let bound = try operation("{ todos { id } }")
            let page = try ParsedResponse.parse(Array(#"{"data":{"todos":[]}}"#.utf8), along: bound.layout)
            var other = SyncPosition(name: "mine", types: ["Todo"], startedAt: 10)
            var after: SyncPosition?
            for (time, marks) in [(90 * 86_400_000 + 1_000, 10), (90 * 86_400_000 + 1_001, 0)] as [(Int64, Int)] {
                other.lastUsed = time
                let end = SyncPage(key: "cd", position: other, after: after, number: 0, mark: nil)
                try await cache.write(page, of: bound, as: end)
                after = other
                #expect(try cache.walkedKeys(of: "ab").count == marks)
                #expect(try cache.position(of: "ab") == (marks > 0 ? position : nil))
            }
        }
    }

    @Test("Of pages that are written together, one that is refused and those after it are not stored")
    func movedAmongOthers() async throws {
        try await swept(begun) { cache, position in
            let bound = try operation("{ todos { id } }")
            var places = (0..<4).map { number in
                var place = position
                place.walk = .init(since: nil, startedAt: 10, token: "t\(number)", pageCount: number + 1)
                return place
            }
            places.insert(position, at: 0)
            let pages = try (0..<4).map { number in
                let page = try ParsedResponse.parse(
                    Array(#"{"data":{"todos":\#(list("Todo", (200 + number)..<(201 + number)))}}"#.utf8),
                    along: bound.layout)
                let after = number == 2 ? nil : places[number]
                let end = SyncPage(
                    key: "ab", position: places[number + 1], after: after, number: number, mark: SyncMark(page))
                return (parsed: page, operation: bound, end: end)
            }
            let outcomes = try await cache.write(pages)
            #expect(outcomes.map { outcome in (try? outcome.get()) != nil } == [true, true, false, false])
            for case .failure(let error) in outcomes { #expect(error.code == .busy) }
            #expect(try (200..<204).map { try cache.version(of: "Todo:\($0)") != nil } == [true, true, false, false])
            #expect(try cache.position(of: "ab") == places[2])
        }
    }

    @Test("It is made in short commits, each of which says where it has come, and ends with no mark left")
    func sliced() async throws {
        try await swept(begun) { cache, position in
            var (stored, counts, commits) = (position, [Int](), 0)
            let seen = try cache.walkedKeys(of: "ab")
            #expect(seen.count == 10)
            while stored.sweep != nil, commits < 100 {
                let next = try await cache.sweep(
                    "ab", at: stored, seen: seen, needed: ["Todo:99"], kept: [], limits: .init(keys: 50, removals: 16))
                #expect(next != stored)
                stored = next
                commits += 1
                counts.append(try count(cache, "Todo") + count(cache, "Todone"))
            }
            #expect(zip([200] + counts, counts).allSatisfy { $0 - $1 <= 16 })
            #expect(commits >= 189 / 16)
            // Of one type those that the walk had and the one that is needed; nothing of the other.
            #expect(try count(cache, "Todo") == 11)
            #expect(try count(cache, "Todone") == 0)
            #expect(try cache.walkedKeys(of: "ab").count == 0)
            #expect(try cache.position(of: "ab")?.startedAt == 10)
        }
    }

    @Test("A slice that has looked at as many objects as it may is no end, whatever it removed")
    func slicedByKeys() async throws {
        try await swept(begun) { cache, position in
            var (stored, commits) = (position, 0)
            let seen = try cache.walkedKeys(of: "ab")
            while stored.sweep != nil, commits < 100 {
                let next = try await cache.sweep(
                    "ab", at: stored, seen: seen, needed: [], kept: [], limits: .init(keys: 30, removals: 1_000))
                stored = next
                commits += 1
            }
            #expect(commits >= 7)
            #expect(try (count(cache, "Todo"), count(cache, "Todone")) == (10, 0))
        }
    }

    @Test("A removal passes over what stays without commits, in one slice")
    func passedOver() async throws {
        try await swept(begun) { cache, position in
            let all = (0..<100).flatMap { ["Todo:\($0)", "Todone:\($0)"] }
            let next = try await cache.sweep(
                "ab", at: position, seen: WalkedKeys(), needed: all, kept: [], limits: .init(keys: 30, removals: 1_000))
            #expect(next.sweep == nil)
            #expect(try (count(cache, "Todo"), count(cache, "Todone")) == (100, 100))
        }
    }

    @Test("A removal says so where an eviction that shared its commit made the synchronization begin with everything")
    func evictedInItsCommit() async throws {
        try await swept(begun) { cache, position in
            let gate = DispatchSemaphore(value: 0)
            let holding = Task {
                try await cache.writer.betweenWrites(until: .now + .seconds(300)) { gate.wait() }
            }
            let sweeping = Task {
                try await cache.sweep("ab", at: position, seen: WalkedKeys(), needed: ["Todo:1"], kept: [])
            }
            try await eventually { cache.writer.waitingCount >= 1 }
            let evicting = Task { try await cache.remove(keys: ["Todo:1"], as: .evicted) }
            try await eventually { cache.writer.waitingCount >= 2 }
            gate.signal()
            try await holding.value
            let error = await #expect(throws: RecordError.self) { try await sweeping.value }
            #expect(error?.code == .busy)
            _ = try await evicting.value
            #expect(try cache.position(of: "ab") == SyncPosition(name: position.name, types: position.types))
        }
    }

    private func beginAnother(of type: String, _ cache: RecordCache) async throws {
        let bound = try operation("{ todos { id } }")
        let page = try ParsedResponse.parse(Array(#"{"data":{"todos":[]}}"#.utf8), along: bound.layout)
        let other = SyncPosition(name: "mine", types: [type], startedAt: 10)
        try await cache.write(
            page, of: bound, as: SyncPage(key: "cd", position: other, after: nil, number: 0, mark: nil))
    }

    @Test("All synchronizations begin with everything once that is asked for, those too that are amid their first walk")
    func forgottenPositions() async throws {
        var first = SyncPosition(name: "todos", types: ["Todo"])
        first.walk = .init(since: nil, startedAt: 10, token: "t", pageCount: 1)
        try await swept(first) { cache, position in
            try await beginAnother(of: "Todone", cache)
            #expect(try cache.position(of: "ab") == position)
            try await cache.forgetPositions()
            #expect(try cache.position(of: "ab") == SyncPosition(name: "todos", types: ["Todo"]))
            #expect(try cache.position(of: "cd") == SyncPosition(name: "mine", types: ["Todone"]))
            #expect(try cache.walkedKeys(of: "ab").count == 0)
        }
    }

    @Test("What does not say when it was changed stays")
    func undated() async throws {
        try await swept(begun) { cache, position in
            let bound = try operation("{ other { id } }")
            let item = #"{"__typename":"Todone","id":"500","_version":1,"_deleted":null,"_lastChangedAt":null}"#
            let answer = try ParsedResponse.parse(Array(#"{"data":{"other":[\#(item)]}}"#.utf8), along: bound.layout)
            _ = try await cache.write(answer, of: bound)
            // As a program stores it whose schema does not say yet that the type has versions.
            let older = try SchemaIndex(parsing: "type Query { other: [Todone] } type Todone { id: ID! }")
            let plain = try CompiledOperation(operation: nil, in: Document(parsing: "{ other { id } }"), older)
                .bound([:])
            let unversioned = Array(#"{"data":{"other":[{"__typename":"Todone","id":"501"}]}}"#.utf8)
            _ = try await cache.write(ParsedResponse.parse(unversioned, along: plain.layout), of: plain)
            _ = try await cache.sweep("ab", at: position, seen: WalkedKeys(), needed: [], kept: [])
            #expect(try count(cache, "Todone") == 0)
            #expect(try cache.version(of: "Todone:500") != nil)
            #expect(try cache.presence(of: "Todone:501").presence == .present)
        }
    }

    @Test("What is of a type that another synchronization has as well stays")
    func sharedType() async throws {
        try await swept(begun) { cache, position in
            try await beginAnother(of: "Todo", cache)
            _ = try await cache.sweep("ab", at: position, seen: WalkedKeys(), needed: [], kept: [])
            #expect(try count(cache, "Todo") == 100)
            #expect(try count(cache, "Todone") == 0)
        }
    }

    @Test("A slice that another has made meanwhile is refused")
    func outrun() async throws {
        try await swept(begun) { cache, position in
            let limits = SyncSweep.Limits(keys: 50, removals: 1)
            _ = try await cache.sweep("ab", at: position, seen: WalkedKeys(), needed: [], kept: [], limits: limits)
            let error = await #expect(throws: RecordError.self) {
                _ = try await cache.sweep("ab", at: position, seen: WalkedKeys(), needed: [], kept: [], limits: limits)
            }
            #expect(error?.code == .busy)
        }
    }

    @Test("What the server changed since the walk began stays")
    func changedSince() async throws {
        var position = begun
        position.sweep = .init(changedBefore: 5)
        try await swept(position) { cache, position in
            let left = try await cache.sweep("ab", at: position, seen: WalkedKeys(), needed: [], kept: [])
            #expect(left.sweep == nil)
            #expect(try count(cache, "Todo") == 100)
        }
    }

    @Test("A place in a removal that is no key is a damaged position", arguments: ["0", "0g", "AB"])
    func damaged(after: String) {
        let stored = #"{"name":"n","types":[],"sweep":{"changedBefore":1,"after":"\#(after)"}}"#
        #expect(SyncPosition(Array(stored.utf8)) == nil)
    }

    @Test("A position comes back as it was stored")
    func stored() {
        var position = begun
        position.sweep?.after = [0, 255, 16]
        (position.server, position.lastUsed) = ("https://a.example", 7)
        #expect(SyncPosition(position.json) == position)
    }
}

extension RecordCache {
    fileprivate func write(
        _ parsed: ParsedResponse, of operation: BoundOperation, as end: SyncPage
    ) async throws(RecordError) {
        for outcome in try await write([(parsed: parsed, operation: operation, end: end)]) { _ = try outcome.get() }
    }
}
