import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

private let schema = """
    scalar Note
    interface Contribution { id: ID! author: Cook }
    type Cook @typePolicy(keyFields: "id") { id: ID! name: String! specialty: String mark(of: Int!): String }
    type Recipe implements Contribution {
      id: ID! title: String! rating: Float author: Cook timing: Timing note: Note detail: Detail comments: [Comment!]
    }
    type Comment implements Contribution { id: ID! author: Cook text: String! }
    type Timing { prepare: Int cook: Int }
    type Weight { grams: Int }
    union Detail = Timing | Weight
    union Found = Cook | Recipe | Comment
    type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"])
      @fieldPolicy(forField: "recipesByID", keyArgs: ["ids"]) {
      recipe(id: ID!): Recipe
      recipesByID(ids: [ID!]!): [Recipe]
      recipes: [Recipe!]!
      latest: [Contribution!]!
      cook(id: ID!): Cook
      found(number: Int!): Found
    }
    type Mutation { rate(recipe: ID!, answer: String): Recipe! say(answer: String): Comment! }
    """

/// Many watchers beside fresh readings, while everything is done to the cache that changes answers.
@Suite("Watchers beside fresh readings", .timeLimit(.minutes(10)))
struct WatcherModelTests {
    /// What a reader sees of a state.
    fileprivate struct Shown: Equatable {
        var json: String?
        var missing: Set<ResponsePath> = []
        var isDeleted = false
        var isOptimistic = false
        var error: String?
    }

    private final class Seen: Sendable {
        private let shown = Mutex<[Shown]>([])
        /// The newest response, where the reader keeps it.
        private let kept = Mutex<Response?>(nil)
        let isEnded = Flag()

        var last: Shown? { shown.withLock { $0.last } }

        func add(_ state: WatchState, keeps: Bool) {
            shown.withLock { $0.append(Shown(state)) }
            if keeps { kept.withLock { $0 = state.response } }
        }

        /// Whether a state was given that is the same as the one before.
        var hasRepeated: Bool { shown.withLock { shown in zip(shown, shown.dropFirst()).contains { $0 == $1 } } }
    }

    private struct Watched {
        let text: String
        let operation: BoundOperation
        let root: RecordCache.Root
        /// Nil for one that shares its reading with others.
        let watcher: Watcher?
        let shared: Watch?
        let reading: Task<Void, Never>
        let seen: Seen
    }

    /// Echoes what the variables say.
    private static let server = ScriptedServer { request in request.values["answer"] as? String ?? "{}" }

    private static let queries = [
        "{ recipes { id title rating } }",
        "{ recipes { title author { name specialty } } }",
        "{ recipes { __typename timing { prepare cook } note detail { __typename ... on Weight { grams } } } }",
        "{ latest { __typename id author { name } ... on Recipe { title rating } ... on Comment { text } } }",
        "{ latest { id ... on Recipe { timing { cook } } } }",
        "{ recipe(id: 1) { title } }", "{ recipe(id: 2) { rating author { id } } }",
        "{ recipe(id: 3) { note comments { text author { name } } } }", "{ recipe(id: 7) { title author { name } } }",
        "{ recipesByID(ids: [1, 2]) { title } }", "{ recipesByID(ids: [3, 7]) { id rating } recipes { id } }",
        "{ cook(id: 1) { name } }", "{ cook(id: 2) { specialty mark(of: 1) } }", "{ cook(id: 40) { name } }",
        "{ found(number: 1) { __typename ... on Cook { name } ... on Recipe { title } ... on Comment { text } } }",
        "{ found(number: 2) { ... on Cook { specialty } ... on Recipe { detail { ... on Timing { cook } } } } }",
    ]
    private static let fragments = [
        ("Recipe:1", "fragment F on Recipe { title rating }"),
        ("Recipe:2", "fragment F on Recipe { detail { __typename } }"),
        ("Recipe:3", "fragment F on Recipe { author { name mark(of: 3) } }"),
        ("Recipe:7", "fragment F on Recipe { title }"),
        ("Recipe:1", "fragment F on Contribution { author { specialty } }"),
        ("Cook:1", "fragment F on Cook { name specialty }"), ("Cook:2", "fragment F on Cook { mark(of: 70) name }"),
        ("Comment:1", "fragment F on Comment { text }"),
        ("Comment:7", "fragment F on Comment { text author { name } }"),
    ]

    private struct Steps {
        var random: SeededNumbers
        let app: Partition

        mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

        mutating func id() -> Value { .string(["1", "2", "3", "7"].randomElement(using: &random) ?? "1") }

        mutating func text() -> Value { .string("\(number(0...3))") }

        mutating func cook() -> Value {
            ["__typename": "Cook", "id": id(), "name": text(), "specialty": number(0...1) == 0 ? nil : text()]
        }

        mutating func detail() -> Value {
            switch number(0...2) {
            case 0: nil
            case 1: ["__typename": "Timing", "cook": .int(Int64(number(0...2)))]
            default: ["__typename": "Weight", "grams": .int(Int64(number(0...2)))]
            }
        }

        mutating func note() -> Value {
            switch number(0...3) {
            case 0: nil
            case 1: .int(Int64(number(0...2)))
            case 2: ["a": .int(Int64(number(0...2))), "b": [1, "x"]]
            default: [text(), ["c": text()]]
            }
        }

        /// An object with all that the document below asks for.
        mutating func recipe() -> Value {
            [
                "__typename": "Recipe", "id": id(), "title": text(), "rating": .float(Double(number(0...2)) + 0.5),
                "author": number(0...2) == 0 ? nil : cook(), "note": note(), "detail": detail(),
                "timing": number(0...1) == 0 ? nil : ["prepare": 1, "cook": .int(Int64(number(0...2)))],
            ]
        }

        mutating func comment() -> Value {
            ["__typename": "Comment", "id": id(), "text": text(), "author": number(0...2) == 0 ? nil : cook()]
        }

        static let cookText = "id name specialty"
        static let recipeText =
            "id title rating author { \(cookText) } note timing { prepare cook } "
            + "detail { __typename ... on Timing { cook } ... on Weight { grams } }"
        static let commentText = "id text author { \(cookText) }"

        /// Some of an object's fields.
        mutating func part(_ fields: [(String, Value)], of type: String) -> (GraphQLFragment, Value) {
            let chosen = fields.shuffled(using: &random).prefix(number(1...2))
            let text = "fragment P on \(type) { \(chosen.map(\.0).joined(separator: " ")) }"
            let values = chosen.map { field, value in (String(field.prefix { $0.isLetter }), value) }
            return (GraphQLFragment(text), .object(Dictionary(uniqueKeysWithValues: values)))
        }

        func key(_ object: Value, _ type: String) -> CacheKey {
            guard case .object(let fields) = object, case .string(let id)? = fields["id"] else { return "Recipe:1" }
            return CacheKey("\(type):\(id)")
        }

        mutating func objects(_ make: (inout Steps) -> Value) -> Value {
            .list((0..<number(0...3)).map { _ in make(&self) })
        }

        mutating func write() async throws -> String {
            switch number(0...9) {
            case 0, 1:
                try await app.write(
                    GraphQLOperation("{ recipes { \(Self.recipeText) } }"), ["recipes": objects { $0.recipe() }])
                return "recipes"
            case 2:
                let text = "__typename ... on Recipe { \(Self.recipeText) } ... on Comment { \(Self.commentText) }"
                let list = objects { $0.number(0...1) == 0 ? $0.recipe() : $0.comment() }
                try await app.write(GraphQLOperation("{ latest { \(text) } }"), ["latest": list])
                return "latest"
            case 3:
                let id = "\(number(1...3))"
                try await app.write(
                    GraphQLOperation("{ cook(id: \(id)) { \(Self.cookText) } }"),
                    ["cook": number(0...3) == 0 ? nil : cook()])
                return "cook \(id)"
            case 4:
                let found: Value = [nil, cook(), recipe(), comment()].randomElement(using: &random) ?? nil
                let text =
                    "__typename ... on Cook { \(Self.cookText) } ... on Recipe { \(Self.recipeText) } "
                    + "... on Comment { \(Self.commentText) }"
                let number = number(1...2)
                try await app.write(
                    GraphQLOperation("{ found(number: \(number)) { \(text) } }"), ["found": found])
                return "found \(number)"
            case 5:
                let comments = objects { $0.comment() }
                try await app.write(
                    "Recipe:3", GraphQLFragment("fragment C on Recipe { comments { \(Self.commentText) } }"),
                    ["comments": comments])
                return "comments"
            case 6, 7:
                let fields: [(String, Value)] = [
                    ("title", text()), ("rating", .float(0.5)), ("note", note()),
                    ("timing { cook }", number(0...1) == 0 ? nil : ["cook": .int(Int64(number(0...2)))]),
                ]
                let (fragment, data) = part(fields, of: "Recipe")
                let key = key(recipe(), "Recipe")
                try await app.write(key, fragment, data)
                return "\(key) \(fragment.document)"
            case 8:
                // So many that its fields become entries of their own.
                let count = number(1...80)
                let fields = (1...count).map { "m\($0): mark(of: \($0))" }.joined(separator: " ")
                let values = (1...count).map { number in ("m\(number)", text()) }
                try await app.write(
                    "Cook:2", GraphQLFragment("fragment M on Cook { \(fields) }"),
                    .object(Dictionary(uniqueKeysWithValues: values)))
                return "marks \(count)"
            default:
                let count = number(1...80)
                let fields = (1...count).map { "c\($0): cook(id: \($0)) { id name }" }.joined(separator: " ")
                let values = (1...count).map { number -> (String, Value) in
                    ("c\(number)", ["id": .string("\(number)"), "name": text()])
                }
                try await app.write(
                    GraphQLOperation("{ \(fields) }"), .object(Dictionary(uniqueKeysWithValues: values)))
                return "cooks \(count)"
            }
        }

        mutating func enqueue() async throws -> String {
            let isComment = number(0...3) == 0
            let (shown, answered) = isComment ? (comment(), comment()) : (recipe(), recipe())
            let (field, text) = isComment ? ("say", Self.commentText) : ("rate", Self.recipeText)
            let data = String(decoding: Value.object([field: answered]).json, as: UTF8.self)
            let answer =
                number(0...2) == 0 ? #"{"data":null,"errors":[{"message":"no"}]}"# : #"{"data":\#(data)}"#
            let arguments = isComment ? "answer: $answer" : "recipe: 1, answer: $answer"
            let key = key(shown, isComment ? "Comment" : "Recipe")
            let list: FieldKey = isComment || number(0...1) == 0 ? "latest" : "recipes"
            let change: ListChange? =
                switch number(0...4) {
                case 0: .insert(key, into: list, at: .start)
                case 1: .insert(key, into: list, at: .ascending(field: isComment ? "text" : "title"))
                case 2: .remove(key, from: list)
                default: nil
                }
            try await app.enqueue(
                GraphQLOperation(
                    "mutation M($answer: String) { \(field)(\(arguments)) { \(text) } }",
                    variables: ["answer": .string(answer)]),
                options: MutationOptions(
                    optimisticResponse: number(0...4) == 0 ? nil : .object([field: shown]),
                    listChanges: change.map { [$0] } ?? []))
            return "enqueue \(field) \(key)"
        }

        mutating func step() async throws -> String {
            switch number(0...19) {
            case 0...9: return try await write()
            case 10...12: return try await enqueue()
            case 13:
                try await quickRunner(app).drain()
                return "drain"
            case 14, 15:
                let type = ["Recipe", "Cook", "Comment"].randomElement(using: &random) ?? "Cook"
                let key = key(cook(), type)
                let removal: Partition.Removal = number(0...1) == 0 ? .deleted : .evicted
                try await app.remove(key, as: removal)
                return "\(removal) \(key)"
            case 16:
                let fields: [FieldKey] = ["recipes", "latest", "cook", "found"]
                let field = fields.randomElement(using: &random) ?? "recipes"
                try await app.remove(field: field)
                return "remove \(field)"
            case 17:
                try await app.remove(field: number(0...1) == 0 ? "rating" : "title", of: "Recipe:1")
                return "remove of Recipe:1"
            case 18:
                _ = try await app.records.compact()
                return "compact"
            default:
                guard number(0...3) == 0 else { return "nothing" }
                try await app.clear(unsent: number(0...1) == 0 ? .keep : .discard)
                return "clear"
            }
        }
    }

    private func watch(_ text: String, _ key: String?, keeps: Bool, isShared: Bool, _ app: Partition) throws -> Watched
    {
        let operations = app.core.operations
        let operation =
            try key.map { _ in try operations.bound(GraphQLFragment(text)) }
            ?? operations.bound(query: GraphQLOperation(text))
        let root = key.map { RecordCache.Root.object(key: $0) } ?? .query
        let seen = Seen()
        if isShared {
            let watch =
                try key.map { try app.watch(CacheKey($0), GraphQLFragment(text)) } ?? app.watch(GraphQLOperation(text))
            let reading = Task {
                for await state in watch { seen.add(state, keeps: keeps) }
                seen.isEnded.set()
            }
            return Watched(
                text: text, operation: operation, root: root, watcher: nil, shared: watch, reading: reading, seen: seen)
        }
        let (states, continuation) = AsyncStream.makeStream(of: WatchState.self, bufferingPolicy: .unbounded)
        let watcher = Watcher(app.core, operation, root)
        #expect(watcher.add(continuation))
        watcher.start()
        let reading = Task {
            for await state in states { seen.add(state, keeps: keeps) }
            seen.isEnded.set()
        }
        return Watched(
            text: text, operation: operation, root: root, watcher: watcher, shared: nil, reading: reading, seen: seen)
    }

    private func end(_ watched: Watched) async {
        watched.watcher?.end()
        if watched.watcher == nil { watched.reading.cancel() }
        await watched.seen.isEnded.wait()
        // With bufferingNewest, a reader who is late may be given what was given before what it missed.
        if watched.watcher != nil { #expect(!watched.seen.hasRepeated, "\(watched.text)") }
    }

    private func fresh(_ watched: Watched, _ app: Partition) -> Shown {
        do throws(RecordError) { return Shown(try app.core.cache.read(watched.operation, from: watched.root)) } catch {
            return Shown(json: watched.seen.last?.json, error: "\(error.code)")
        }
    }

    /// Waits until each watcher has given what a fresh reading gives.
    private func compare(_ watched: [Watched], _ app: Partition, _ steps: [String], _ seed: UInt64) async throws {
        let deadline = SuspendingClock.now + .seconds(10)
        for watched in watched {
            while true {
                let (fresh, last) = (fresh(watched, app), watched.seen.last)
                if fresh == last || fresh.error != nil && last?.error != nil { break }
                guard .now < deadline else {
                    Issue.record(
                        """
                        seed \(seed): \(watched.text) at \(watched.root.key) gave \(String(describing: last)), \
                        and a reading \(fresh), after \(steps.suffix(12).joined(separator: "; "))
                        """)
                    throw Silence()
                }
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    @Test("Watchers come to what fresh readings give when everything is done at once", arguments: 0..<2)
    func together(round: Int) async throws {
        let seed = TestSeed.of("watchers together", round)
        try await withStoreFixture(Self.server, schema: schema) { app in
            let all = Self.queries.map { (String?.none, $0) } + Self.fragments.map { ($0.0, $0.1) }
            var watched: [Watched] = []
            for (index, (key, text)) in all.enumerated() {
                for copy in 0..<2 {
                    watched.append(try watch(text, key, keeps: copy == 0, isShared: index % 5 == 0, app))
                }
            }
            for part in 0..<8 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for writer in 0..<3 {
                        group.addTask {
                            let seed = SeededNumbers(seed: seed, "\(part) \(writer)")
                            var steps = Steps(random: seed, app: app)
                            // One of two collections or clearings that meet is refused.
                            for _ in 0..<30 {
                                do { _ = try await steps.step() } catch is LarderError {} catch is RecordError {}
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                try await compare(watched, app, ["part \(part)"], seed)
            }
            for watched in watched { await end(watched) }
            watched = []
            try await eventually { app.core.watchers.isEmpty }
        }
    }

    @Test(
        "Whatever is done to the cache, watchers come to what fresh readings give, and none tells the same twice",
        arguments: 0..<4)
    func model(round: Int) async throws {
        let seed = TestSeed.of("watchers", round)
        try await withStoreFixture(Self.server, schema: schema) { app in
            var steps = Steps(random: SeededNumbers(seed: seed), app: app)
            let all = Self.queries.map { (String?.none, $0) } + Self.fragments.map { ($0.0, $0.1) }
            var watched: [Watched] = []
            for (index, (key, text)) in all.enumerated() {
                for copy in 0..<2 {
                    watched.append(try watch(text, key, keeps: copy == 0, isShared: index % 5 == 0, app))
                }
            }
            var done: [String] = []
            for _ in 0..<150 {
                // Some come together.
                let count = steps.number(0...3) == 0 ? steps.number(2...5) : 1
                for _ in 0..<count { done.append(try await steps.step()) }
                if steps.number(0...4) == 0, let index = watched.indices.randomElement(using: &steps.random) {
                    await end(watched[index])
                    guard let (key, text) = all.randomElement(using: &steps.random) else { continue }
                    watched[index] = try watch(
                        text, key, keeps: steps.number(0...1) == 0, isShared: steps.number(0...4) == 0, app)
                    done.append("another watcher")
                }
                try await compare(watched, app, done, seed)
            }
            for watched in watched { await end(watched) }
            watched = []
            try await eventually { app.core.watchers.isEmpty }
        }
    }
}

extension WatcherModelTests.Shown {
    fileprivate init(_ state: WatchState) {
        self.init(
            json: state.response?.description, missing: Set(state.response?.missing ?? []), isDeleted: state.isDeleted,
            isOptimistic: state.isOptimistic, error: state.error.map { "\($0.code)" })
    }

    fileprivate init(_ answer: CacheAnswer) {
        let response = answer.isDeleted ? nil : answer.response
        self.init(
            json: response?.description, missing: Set(response?.missing ?? []), isDeleted: answer.isDeleted,
            isOptimistic: answer.isOptimistic)
    }
}
