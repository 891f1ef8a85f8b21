package import Foundation
package import Larder
import LarderRecords
import Synchronization

/// What a program does with a store, in several lives that each end with a clean close: mutations are queued, shown,
/// sent, refused, replayed and discarded, answers are stored and watched, and the cache is compacted and cleared.
///
/// What it was promised it marks at once:
///
/// ```
/// accepted ID TAG        enqueue has returned
/// effect KEY ...         the server has carried it out
/// ended ID STATE         its outcome was read
/// replaying ID           from here on it is no dead letter any more, perhaps
/// discarding ID
/// clearing
/// ```
package struct PowerLossLoad: Sendable {
    package static let schema = """
        type Recipe { id: ID! title: String! stars: Int }
        type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"]) { recipe(id: ID!): Recipe recipes: [Recipe!] }
        type Mutation { add(title: String!): Recipe! rate(recipe: ID!, stars: Int!): Recipe! }
        """
    package static let card = GraphQLFragment("fragment F on Recipe { title stars }")
    package static let list = GraphQLOperation("{ recipes { id title stars } }")
    package static let watcher = "list"

    package let folder: URL
    package let marks: Marks
    package let seed: UInt64
    package let lives: Int

    package init(folder: URL, marks: Marks, seed: UInt64, lives: Int) {
        (self.folder, self.marks, self.seed, self.lives) = (folder, marks, seed, lives)
    }

    package func run() async throws {
        let server = RecipeLedger(losingBySeed: seed) { [marks] key, effect in marks("effect", key, effect.words) }
        var tag = 0
        for life in 0..<lives {
            let store = try Store.open(at: folder, schemaText: [Self.schema])
            let app = try store.partition(server: server)
            let isFirst = life == 0
            if isFirst { try await storeList(app, server) }
            // What a named watcher was given is noted although nothing else is written then: its commit is the last.
            let watching = try await watch(app)
            try await write(plainly: life * 10, app)
            try await Task.sleep(for: .milliseconds(40))
            switch life % 3 {
            case 1: _ = try await app.records.compact()
            case 2:
                marks("clearing")
                _ = try await app.records.clear()
                try await storeList(app, server)
            default: break
            }
            try await work(app, &tag)
            try await write(plainly: life * 10 + 1, app)
            try store.close()
            try await watching.value
        }
    }

    /// Opens the store again that was left in the middle of a life, and sends what is queued.
    ///
    /// - Parameter earlier: What was marked until then.
    package func recover(after earlier: [String]) async throws {
        var promised = Acknowledged()
        for mark in earlier { promised.take(mark) }
        let server = RecipeLedger(after: promised.effects) { [marks] key, effect in marks("effect", key, effect.words) }
        let store = try Store.open(at: folder, schemaText: [Self.schema])
        let app = try store.partition(server: server)
        try await drain(app)
        for id in promised.mutations.keys {
            guard let state = try app.mutation(id).status()?.state, state == .applied else { continue }
            marks("ended", "\(id)", state.rawValue)
        }
        try store.close()
        marks("closed")
    }

    /// Goes through what a named watcher gives until the store is closed.
    private func watch(_ app: Partition) async throws -> Task<Void, any Error> {
        let states = try await app.watch(named: Self.watcher, Self.list)
        return Task { [marks] in
            do {
                for try await _ in states { marks("given") }
            } catch let error as LarderError where error.code == .parked {}
        }
    }

    /// Stores what the server has, and one recipe that it does not know.
    private func storeList(_ app: Partition, _ server: RecipeLedger) async throws {
        var recipes = server.recipes.map { id, recipe in
            Value.object(["id": .string(id), "title": .string(recipe.title), "stars": .int(Int64(recipe.stars))])
        }
        recipes.append(["id": "plain", "title": "Porridge", "stars": 0])
        try await app.write(Self.list, ["recipes": .list(recipes)])
    }

    private func write(plainly stars: Int, _ app: Partition) async throws {
        try await app.write("Recipe:plain", Self.card, ["title": "Porridge", "stars": .int(Int64(stars))])
    }

    // MARK: Mutations

    private func work(_ app: Partition, _ tag: inout Int) async throws {
        func next() -> Int {
            tag += 1
            return tag
        }
        let id = TemporaryObjectID()
        var ended: [Task<MutationStatus, any Error>] = []
        let (made, rated, known, refused, given) = (next(), next(), next(), next(), next())
        ended.append(
            try await queue(
                app, made, Self.add("title-\(made)"),
                MutationOptions(
                    optimisticResponse: ["add": Self.recipe(id.value, title: "title-\(made)", stars: 0)],
                    listChanges: [.insert("Recipe:\(id.text)", into: "recipes", at: .start)], temporaryIDs: [id])))
        ended.append(
            try await queue(
                app, rated, Self.rate(id.value, rated),
                MutationOptions(
                    optimisticResponse: ["rate": Self.recipe(id.value, title: "title-\(made)", stars: rated)])))
        ended.append(try await queue(app, known, Self.rate("r0", known), MutationOptions(lane: "known")))
        ended.append(try await queue(app, refused, Self.add("refused-\(refused)"), MutationOptions(lane: "refused")))
        ended.append(try await queue(app, given, Self.add("refused-\(given)"), MutationOptions(lane: "given up")))
        try await drain(app)
        for task in ended { _ = try await task.value }
        for letter in try app.mutations(in: [.deadLetter]) {
            let id = letter.id
            if try await ended[3].value.id == id {
                marks("replaying", "\(id)")
                try await app.editMutation(id, variables: ["title": .string("replayed-\(refused)")])
                try await app.replayMutation(id)
            } else {
                marks("discarding", "\(id)")
                try await app.discardMutation(id, dependents: .setAside)
                marks("ended", "\(id)", MutationStatus.State.discarded.rawValue)
            }
        }
        let replayed = Task { try await end(app.mutation(try await ended[3].value.id)) }
        try await drain(app)
        _ = try await replayed.value
    }

    private func queue(
        _ app: Partition, _ tag: Int, _ operation: GraphQLOperation, _ queued: MutationOptions
    ) async throws -> Task<MutationStatus, any Error> {
        let receipt = try await app.enqueue(operation, options: queued)
        marks("accepted", "\(receipt.id)", "\(tag)")
        return Task { try await end(receipt) }
    }

    private func end(_ receipt: MutationReceipt) async throws -> MutationStatus {
        _ = try await receipt.outcome(within: .seconds(60))
        guard let status = try receipt.status() else { throw CocoaError(.featureUnsupported) }
        marks("ended", "\(receipt.id)", status.state.rawValue)
        return status
    }

    private func drain(_ app: Partition) async throws {
        var options = MutationRunner.Options()
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
        try await MutationRunner(app, options: options).drain()
    }

    private static func add(_ title: String) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Add($title: String!) { add(title: $title) { id title stars } }",
            variables: ["title": .string(title)])
    }

    private static func rate(_ recipe: Value, _ stars: Int) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id title stars } }",
            variables: ["recipe": recipe, "stars": .int(Int64(stars))])
    }

    private static func recipe(_ id: Value, title: String, stars: Int) -> Value {
        ["__typename": "Recipe", "id": id, "title": .string(title), "stars": .int(Int64(stars))]
    }
}
