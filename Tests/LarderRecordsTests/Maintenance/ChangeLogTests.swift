import Foundation
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("The log of changes", .timeLimit(.minutes(10)))
struct ChangeLogTests {
    @Test("It tells of the last 1,024 commits, and one position further back is everything")
    func length() async throws {
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ count }")
            for number in 0..<1_026 {
                let parsed = try ParsedResponse.parse(
                    Array("{\"data\":{\"count\":\(number)}}".utf8), along: operation.layout)
                _ = try await sample.cache.write(parsed, of: operation)
            }
            var position = try sample.cache.position
            let last = position.number
            position.number = last - 1_024
            guard case .changes(let changes) = try sample.cache.changes(since: position) else {
                Issue.record("the log has lost one of 1,024")
                return
            }
            #expect(changes.map(\.number) == Array((last - 1_023)...last))
            position.number -= 1
            #expect(try sample.cache.changes(since: position) == .everything)
        }
    }

    @Test("4,096 pairs are kept by field, more of them by record, and more records than that as everything")
    func sizes() throws {
        func kept(records: Int, fields: Int) throws -> ChangeSet {
            var changes = ChangeSet()
            for record in 1...records {
                for field in 1...fields {
                    changes.fields.append(RecordField(record: UInt64(record), field: UInt32(field)))
                }
            }
            return try unsafe changes.encoded.withUnsafeBytes { unsafe try ChangeSet(encoded: $0) }
        }
        #expect(try kept(records: 1, fields: 4_096).fields.map(\.field) == Array(1...4_096))
        #expect(try kept(records: 1, fields: 4_097).fields == [RecordField(record: 1, field: RecordField.any)])
        let records = try kept(records: 4_096, fields: 2)
        #expect(!records.isEverything && records.fields.map(\.record) == Array(1...4_096))
        #expect(try kept(records: 4_097, fields: 1).isEverything)
    }

    @Test("Changes of which the beginning is missing, or another, are damaged")
    func damagedChanges() throws {
        func decoded(_ bytes: [UInt8]) throws -> ChangeSet {
            try unsafe bytes.withUnsafeBytes { unsafe try ChangeSet(encoded: $0) }
        }
        #expect(try decoded([1, 0]).fields == [])
        for bytes in [[], [1], [2, 0]] as [[UInt8]] {
            let error = #expect(throws: RecordError.self) { try decoded(bytes) }
            #expect(error?.code == .damaged)
        }
    }

    @Test("The next look reports changes that clearing or compacting has lost as everything")
    func lost() async throws {
        try await withSampleCache(movieSchema) { sample in
            func count(_ number: Int) async throws {
                try await sample.write("{ count }", data: "{\"count\":\(number)}")
            }
            func look(_ position: ChangePosition?) throws -> [String] {
                try sample.cache.inspect.changes(after: position).changes.map { change in
                    "\(change.number) \(change.isEverything ? "everything" : change.keys.joined(separator: " "))"
                }
            }
            try await count(1)
            let first = try sample.cache.position
            #expect(try look(nil) == ["1 QUERY_ROOT"])
            #expect(try look(first) == [])
            try await sample.cache.compact()
            // Nothing was lost: what came before was seen.
            #expect(try look(first) == [])
            try await count(2)
            try await sample.cache.compact()
            #expect(try look(first) == ["2 everything"])
            try await count(3)
            #expect(try look(first) == ["2 everything", "3 QUERY_ROOT"])
            let third = try sample.cache.position
            _ = try await sample.cache.clear()
            #expect(try look(third) == ["0 everything"])
            // The numbers begin anew, and may be the same.
            for number in 1...3 { try await count(number) }
            #expect(try look(third) == ["0 everything"] + (1...3).map { "\($0) QUERY_ROOT" })
        }
    }

    @Test("A look for the commits of other processes tells nobody of this one's own once more")
    func ownCommits() async throws {
        try await withSampleCache(movieSchema) { sample in
            let told = Mutex<[UInt64]>([])
            sample.cache.observe { commit in told.withLock { $0.append(commit.position.number) } }
            try await sample.cache.noticeOtherProcesses()
            for number in 1...3 { try await sample.write("{ count }", data: "{\"count\":\(number)}") }
            try await sample.cache.noticeOtherProcesses()
            try await sample.write("{ count }", data: #"{"count":4}"#)
            try await sample.cache.noticeOtherProcesses()
            #expect(told.withLock { $0 } == [1, 2, 3, 4])
        }
    }

    @Test("A look for the commits of other processes tells none of this process again after a compaction")
    func ownCommitsCompacted() async throws {
        try await withSampleCache(movieSchema) { sample in
            let told = Mutex<[Bool]>([])
            sample.cache.observe { commit in told.withLock { $0.append(commit.changes.isEverything) } }
            for number in 1...3 { try await sample.write("{ count }", data: "{\"count\":\(number)}") }
            try await sample.cache.compact()
            try await sample.cache.noticeOtherProcesses()
            #expect(told.withLock { $0 } == [false, false, false])
        }
    }

    @Test("Clearing is told once, and what is written after it by the numbers of its own generation")
    func ownClearing() async throws {
        try await withSampleCache(movieSchema) { sample in
            let told = Mutex<[Bool]>([])
            sample.cache.observe { commit in told.withLock { $0.append(commit.changes.isEverything) } }
            try await sample.write("{ count }", data: #"{"count":1}"#)
            try await sample.cache.clear()
            try await sample.cache.noticeOtherProcesses()
            try await sample.write("{ count }", data: #"{"count":2}"#)
            try await sample.cache.noticeOtherProcesses()
            #expect(told.withLock { $0 } == [false, true, false])
        }
    }

    @Test("The log holds as many changes as its length says, and a position before them tells nothing")
    func logBounds() async throws {
        try await withSampleCache(movieSchema) { sample in
            let operation = try sample.operation("{ count }")
            let start = try sample.cache.position
            func write(_ number: Int) async throws {
                _ = try await sample.cache.write(
                    .parse(Array("{\"data\":{\"count\":\(number)}}".utf8), along: operation.layout), of: operation)
            }
            let length = Int(RecordChanges.logLength)
            for number in 0..<length { try await write(number) }
            guard case .changes(let all) = try sample.cache.changes(since: start) else {
                Issue.record("not all changes are told")
                return
            }
            #expect(all.count == length)
            try await write(-1)
            #expect(try sample.cache.changes(since: start) == .everything)
            #expect(try sample.cache.inspect.statistics().tables.first { $0.name == "changes" }?.entries == length)
        }
    }

    @Test("A commit that only removes an object is in the log")
    func removed() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ movies { id title } }", data: #"{"movies":[{"__typename":"Movie","id":"1","title":"a"}]}"#)
            try await sample.write("{ movies { id title } }", data: #"{"movies":[]}"#)
            let position = try sample.cache.position
            _ = try await sample.cache.remove(keys: ["Movie:1"], as: .evicted)
            let changes = try sample.cache.inspect.changes(after: position).changes
            #expect(changes.map(\.number) == [position.number + 1])
            #expect(changes.allSatisfy { !$0.isEverything })
        }
    }

    @Test("A change of an object without identity is told by the key of the object that holds it")
    func changedParts() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write("{ box { x } }", data: #"{"box":{"x":1}}"#)
            let position = try sample.cache.position
            try await sample.write("{ box { y } }", data: #"{"box":{"y":2}}"#)
            #expect(try sample.cache.inspect.changes(after: position).changes.map(\.keys) == [["QUERY_ROOT"]])
        }
    }

    @Test("A commit is counted by objects: those that came, those that changed, and those that went")
    func tallied() async throws {
        try await withSampleCache(movieSchema) { sample in
            func movie(_ id: Int, _ title: String) -> String {
                #"{"__typename":"Movie","id":"\#(id)","title":"\#(title)","year":\#(title.count)}"#
            }
            func write(_ movies: String...) async throws -> Commit {
                try await sample.write(
                    "{ movies { id title year } }", data: #"{"movies":[\#(movies.joined(separator: ","))]}"#)
            }
            let first = try sample.cache.tally(try await write(movie(1, "a"), movie(2, "b")))
            // The root of all queries came too.
            #expect((first.created, first.changed, first.removed) == (3, 0, 0))
            let second = try sample.cache.tally(try await write(movie(1, "other"), movie(2, "b"), movie(3, "c")))
            #expect((second.created, second.changed, second.removed) == (1, 2, 0))
            let third = try sample.cache.tally(try await sample.cache.remove(keys: ["Movie:1"], as: .deleted))
            #expect((third.created, third.changed, third.removed) == (0, 0, 1))
            let earlier = try await write(movie(4, "d"))
            _ = try await sample.cache.clear()
            // Its numbers are those of other objects by now, or of none.
            #expect(try sample.cache.tally(earlier) == ChangeTally())
        }
    }

    @Test("A commit is counted with its objects that have no identity")
    func talliedParts() async throws {
        try await withSampleCache(movieSchema) { (sample) throws in
            func counts(_ field: String, _ box: String) async throws -> [Int] {
                let commit = try await sample.write("{ box { \(field) } }", data: #"{"box":\#(box)}"#)
                let tally = try sample.cache.tally(commit)
                return [tally.created, tally.changed, tally.removed]
            }
            // The root of all queries came too.
            #expect(try await counts("x", #"{"x":1}"#) == [2, 0, 0])
            #expect(try await counts("y", #"{"y":2}"#) == [0, 1, 0])
            #expect(try await counts("x", "null") == [0, 1, 1])
        }
    }

    @Test("Answers of the same objects have different footprints where an object is read otherwise")
    func footprints() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ strict { id title year } }",
                data: #"{"strict":[{"__typename":"Movie","id":"1","title":"A","year":1}]}"#)
            let operation = try sample.operation("{ movie { id title } top { id year } }")
            func footprint(_ data: String) async throws -> Footprint {
                try await sample.write("{ movie { id } top { id } }", data: data)
                return try sample.cache.read(operation).footprint
            }
            let (single, listed) = (
                #"{"movie":{"__typename":"Movie","id":"1"},"top":[]}"#,
                #"{"movie":null,"top":[{"__typename":"Movie","id":"1"}]}"#
            )
            let first = try await footprint(single)
            #expect(try await footprint(listed) != first)
            #expect(try await footprint(single) == first)
        }
    }

    @Test("An answer waits for a field whose name the cache has never seen, and for nothing of other objects")
    func unknownField() async throws {
        try await withSampleCache(movieSchema) { sample in
            for id in ["1", "2"] {
                try await sample.write(
                    "{ movie(id: \(id)) { id title } }",
                    data: #"{"movie":{"__typename":"Movie","id":"\#(id)","title":"A"}}"#)
            }
            let answer = try sample.cache.read(sample.operation("{ movie(id: 1) { id year } }"))
            let position = try sample.cache.position
            try await sample.write(
                "{ movie(id: 2) { id year } }", data: #"{"movie":{"__typename":"Movie","id":"2","year":2}}"#)
            #expect(try sample.cache.changedKeys(since: position, in: answer) == .keys([]))
            try await sample.write(
                "{ movie(id: 1) { id year } }", data: #"{"movie":{"__typename":"Movie","id":"1","year":1}}"#)
            #expect(try sample.cache.changedKeys(since: position, in: answer) == .keys(["Movie:1"]))
        }
    }

    @Test("The numbers of a cleared cache are not taken for an earlier answer's numbers")
    func otherNumbers() async throws {
        try await withSampleCache(movieSchema) { sample in
            func write(_ id: String, _ title: String) async throws {
                try await sample.write(
                    "{ movie(id: 1) { id title } }",
                    data: #"{"movie":{"__typename":"Movie","id":"\#(id)","title":"\#(title)"}}"#)
            }
            try await write("1", "A")
            let answer = try sample.cache.read(sample.operation("{ movie(id: 1) { id title } }"))
            _ = try await sample.cache.clear()
            try await write("2", "B")
            let position = try sample.cache.position
            try await write("2", "C")
            // Movie:2 has the number that Movie:1 had.
            #expect(try sample.cache.changedKeys(since: position, in: answer) == .anything)
            let later = try sample.cache.read(sample.operation("{ movie(id: 1) { id title } }"))
            #expect(try sample.cache.changedKeys(since: position, in: later) == .keys(["Movie:2"]))
        }
    }

    @Test("Numbers and positions that were noted of a cache tell nothing of one that was brought back or transformed")
    func startedAnew() {
        var state = GenerationState.fresh()
        let before = state
        state.startAnew()
        #expect(state.numbering != before.numbering)
        #expect(state.epoch != before.epoch)
    }
}
