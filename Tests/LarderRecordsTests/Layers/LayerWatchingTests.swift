import Foundation
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Watchers of optimistic layers", .timeLimit(.minutes(10)))
struct LayerWatchingTests {
    /// What was told since it was asked last.
    private final class Told: Sendable {
        private let commits = Mutex<[Commit]>([])
        let cache: RecordCache

        init(_ cache: RecordCache) async throws {
            self.cache = cache
            cache.observe { commit in self.commits.withLock { $0.append(commit) } }
            try await cache.noticeOtherProcesses()
        }

        func take() async throws -> [Commit] {
            // Comes after everything that the writer's thread has to tell.
            try await cache.noticeOtherProcesses()
            return commits.withLock { commits in
                defer { commits = [] }
                return commits
            }
        }
    }

    private func wakes(_ commits: [Commit], _ dependencies: Dependencies) -> Bool {
        commits.contains { commit in
            if commit.changes.isEverything { return true }
            let isField =
                commit.generation == dependencies.generation
                && commit.changes.fields.contains { change in
                    dependencies.fieldSet(of: change.record)?.isConcerned(by: change.field) == true
                }
            return isField || commit.changes.createdKeys.contains { dependencies.absentKeys.contains($0) }
        }
    }

    private func dependencies(_ text: String, in sample: SampleCache) throws -> Dependencies {
        try sample.cache.read(sample.operation(text)).dependencies
    }

    @Test("Layers that are set, changed and taken away wake the watchers of what they touch, and no other")
    func setting() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ movie(id: 1) { id title year } }",
                data: #"{"movie":{"__typename":"Movie","id":"1","title":"Old","year":1}}"#)
            let told = try await Told(sample.cache)
            let position = try sample.cache.position
            let (title, year) = ("{ movie(id: 1) { title } }", "{ movie(id: 1) { year } }")
            for layers in [["a"], ["b"], ["a", "b"], ["b"], []] {
                let (onTitle, onYear) = (try dependencies(title, in: sample), try dependencies(year, in: sample))
                let before = try sample.title("1")
                try sample.cache.setLayers(layers.map { try sample.titleLayer($0, movie: "1", $0) })
                let commits = try await told.take()
                #expect(wakes(commits, onTitle) == (try sample.title("1") != before))
                #expect(!wakes(commits, onYear))
                #expect(commits.allSatisfy { $0.isOfLayers && $0.position == position })
            }
            #expect(try sample.cache.position == position)
        }
    }

    @Test("An answer under layers of another numbering may be different in everything")
    func otherNumbering() async throws {
        try await withSampleCache(movieSchema) { sample in
            let read = { try sample.cache.read(sample.operation("{ movie(id: 1) { id title } }")) }
            try await sample.writeMovie("1", title: "Old")
            try sample.cache.setLayers([sample.titleLayer("k", movie: "1", "New")])
            let earlier = try read()
            _ = try await sample.cache.clear()
            try await sample.writeMovie("1", title: "Newer")
            let position = try sample.cache.position
            let later = try read()
            #expect(try sample.cache.changedKeys(since: position, earlier, in: later) == .anything)
            #expect(try sample.cache.changedKeys(since: position, later, in: later) == .keys([]))
        }
    }

    @Test("The same layers again tell nothing")
    func same() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let layers = [try sample.titleLayer("a", movie: "1", "A"), try sample.titleLayer("b", movie: "tmp", "B")]
            try sample.cache.setLayers(layers)
            let told = try await Told(sample.cache)
            _ = try await told.take()
            try sample.cache.setLayers(layers)
            #expect(try await told.take().isEmpty)
            try await sample.writeMovie("5", title: "Elsewhere")
            #expect(try await told.take().map(\.isOfLayers) == [false])
        }
    }

    @Test("An answer that changes nothing stored still wakes the watchers that saw the layer")
    func emptyAnswer() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let layer = try sample.titleLayer("k", movie: "1", "Mine")
            try sample.cache.setLayers([layer])
            let told = try await Told(sample.cache)
            _ = try await told.take()
            let seen = try dependencies("{ movie(id: 1) { title } }", in: sample)
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            let text = #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"Old"}}}"#
            let answer = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            let commit = try await sample.cache.write(answer, of: operation, applying: layer.key)
            #expect(commit.changes.isEmpty)
            let commits = try await told.take()
            #expect(wakes(commits, seen))
            #expect(commits.map(\.isOfLayers) == [true])
            try sample.cache.setLayers([])
            #expect(try await told.take().isEmpty)
        }
    }

    @Test("An answer that another process stores wakes the watchers that saw the layer here")
    func otherProcess() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let layer = try sample.titleLayer("k", movie: "1", "Mine")
            try sample.cache.setLayers([layer])
            let told = try await Told(sample.cache)
            _ = try await told.take()
            let seen = try dependencies("{ movie(id: 1) { title } }", in: sample)
            try sample.cache.writeAsAnother(nil, applying: layer.key)
            #expect(try sample.title("1") == #"{"title":"Old"}"#)
            #expect(wakes(try await told.take(), seen))
        }
    }

    @Test("A watcher of an object that only layers know hears of its changes, and of its creation")
    func created() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ movie(id: 1) { title director { name } } }"
            let before = try dependencies(query, in: sample)
            let told = try await Told(sample.cache)
            let director = #""director":{"__typename":"User","id":"tmp","name":"N"}"#
            let text = "{ movie(id: 1) { id title director { name } } }"
            try sample.cache.setLayers([
                sample.layer("a", text, data: #"{"movie":{"__typename":"Movie","id":"1","title":"T",\#(director)}}"#)
            ])
            #expect(wakes(try await told.take(), before))
            let (under, object) = (try dependencies(query, in: sample), try sample.cache.presence(of: "User:tmp"))
            #expect(object.presence == .present)
            try sample.cache.setLayers([
                sample.layer(
                    "a", text,
                    data: #"""
                        {"movie":{"__typename":"Movie","id":"1","title":"T",
                        "director":{"__typename":"User","id":"tmp","name":"M"}}}
                        """#)
            ])
            let commits = try await told.take()
            #expect(wakes(commits, under))
            #expect(wakes(commits, object.dependencies))
            // Both objects come into being below the layer, under numbers of the store.
            let later = try dependencies(query, in: sample)
            try await sample.write(
                "{ node(id: \"tmp\") { ... on User { id name } } }",
                data: #"{"node":{"__typename":"User","id":"tmp","name":"S"}}"#)
            #expect(wakes(try await told.take().filter { !$0.isOfLayers }, later))
        }
    }

    @Test("A watcher of a field whose name only layers know hears of it when the store gets it")
    func namesFromBelow() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ a: movie(id: 1) { id } b: movie(id: 2) { id } }",
                data: #"{"a":{"__typename":"Movie","id":"1"},"b":{"__typename":"Movie","id":"2"}}"#)
            try sample.cache.setLayers([sample.titleLayer("k", movie: "1", "Mine")])
            let told = try await Told(sample.cache)
            _ = try await told.take()
            let seen = try dependencies("{ movie(id: 2) { title } }", in: sample)
            try await sample.writeMovie("2", title: "Two")
            #expect(wakes(try await told.take(), seen))
        }
    }

    @Test("A commit that changes what a layer makes of something else tells of that too")
    func throughLayers() async throws {
        try await withSampleCache(movieSchema) { sample in
            let insert = try await sample.insertByYear()
            try sample.cache.setLayers([OptimisticLayer(key: try #require(AppliedKey("k")), edits: [insert])])
            let list = "{ movies { id } }"
            #expect(try sample.json(list) == #"{"movies":[{"id":"1"},{"id":"9"},{"id":"2"}]}"#)
            let told = try await Told(sample.cache)
            _ = try await told.take()
            let seen = try dependencies(list, in: sample)
            try await sample.write(
                "{ movie(id: 1) { id year } }", data: #"{"movie":{"__typename":"Movie","id":"1","year":16}}"#)
            #expect(wakes(try await told.take(), seen))
            #expect(try sample.json(list) == #"{"movies":[{"id":"9"},{"id":"1"},{"id":"2"}]}"#)
        }
    }

    @Test("Changes by layers right after a long telling are told later, without another commit")
    func toldLater() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.writeMovie("1", title: "Old")
            let isListening = Mutex(false)
            let tellings = Mutex<[SuspendingClock.Instant]>([])
            sample.cache.observe(while: { isListening.withLock { $0 } }) { commit in
                if commit.isOfLayers { tellings.withLock { $0.append(.now) } }
            }
            let operation = try sample.operation("{ movie(id: 1) { id title } }")
            func answer(_ title: String) throws -> ParsedResponse {
                let text = #"{"data":{"movie":{"__typename":"Movie","id":"1","title":"\#(title)"}}}"#
                return try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
            }
            // As often as that comes to pass.
            for round in 1...2 {
                let (mine, key) = (try answer("Mine \(round)"), try #require(AppliedKey("k\(round)")))
                let layer = OptimisticLayer(key: key) { () throws(RecordError) in
                    // The next telling waits for as long as this one took.
                    Thread.sleep(forTimeInterval: 0.5)
                    return OptimisticLayer.Content(response: .init(mine, of: operation))
                }
                isListening.withLock { $0 = false }
                sample.cache.replaceLayers([layer])
                isListening.withLock { $0 = true }
                _ = try await sample.cache.write(answer("Newer \(round)"), of: operation)
                try await sample.cache.noteRejected(key)
                for _ in 0..<6_000 where tellings.withLock({ $0.count }) < 2 * round {
                    try await Task.sleep(for: .milliseconds(10))
                }
                let times = tellings.withLock { $0 }
                try #require(times.count == 2 * round)
                #expect(times[2 * round - 1] - times[2 * round - 2] >= .milliseconds(500))
            }
        }
    }
}

extension SampleCache {
    /// Stores a list of the movies 1 and 2, and the movie 9.
    ///
    /// - Returns: What puts the movie 9 between the others, by its year.
    func insertByYear() async throws -> ListEdit {
        try await write(
            "{ movies { id year } node(id: \"9\") { ... on Movie { id year } } }",
            data: #"""
                {"movies":[{"__typename":"Movie","id":"1","year":10},{"__typename":"Movie","id":"2","year":20}],
                "node":{"__typename":"Movie","id":"9","year":15}}
                """#)
        return ListEdit(field: "movies", .insert(key: "Movie:9", at: .ascending(field: "year")))
    }
}

extension RecordCache {
    /// Commits as another process does: this one's writer knows nothing of it.
    func writeAsAnother(
        _ answer: OptimisticLayer.Answer?, edits: [ListEdit] = [], applying key: AppliedKey? = nil
    ) throws {
        let generation = generations.current
        try generation.environment.write(deadline: .now + .seconds(300)) { transaction in
            var changes = RecordChanges(try GenerationState.stored(transaction, generation.tables))
            if let key {
                try changes.note(key, .applied, 0, generation, transaction)
                guard changes.earlier == nil else { return }
            }
            if let answer {
                let writer = ResponseWriter(answer.parsed, of: answer.operation, in: generation, changes)
                changes = try writer.run(.init(answer.root, answer.operation), transaction)
            }
            try changes.store(generation, &transaction)
            for edit in edits {
                var later = RecordChanges(changes.state)
                try later.edit(edit, generation, transaction)
                try later.store(generation, &transaction)
                changes.join(later)
            }
            try changes.finish(generation.tables, &transaction)
        }
    }
}
