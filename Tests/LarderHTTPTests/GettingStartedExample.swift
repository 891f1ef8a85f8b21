import Foundation
import Larder
import LarderHTTP

// The code of the articles Getting started, Working offline and Moving from Apollo; a test compares it.

struct Card: Codable, Sendable {
    var __typename = "Recipe"
    var id: String
    var title: String
    var rating: Double?
}

struct LatestCards: TypedOperation {
    struct Data: Codable, Sendable { var recipes: Page }
    struct Page: Codable, Sendable { var items: [Card] }
    var limit: Int

    var operation: GraphQLOperation {
        GraphQLOperation(
            "query Latest($n: Int) { recipes(first: $n) { items { __typename id title rating } } }",
            variables: ["n": .int(Int64(limit))])
    }
}

struct Rate: TypedOperation {
    struct Data: Codable, Sendable { var rateRecipe: Card? }
    var id: String
    var stars: Int

    var operation: GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($id: ID!, $n: Int!) { rateRecipe(id: $id, stars: $n) { __typename id title rating } }",
            variables: ["id": .string(id), "n": .int(Int64(stars))])
    }
}

func openStore(at folder: URL, schema: String) throws -> Store {
    try Store.open(at: folder, schemaText: [schema])
}

func firstScreen(_ app: Partition) async throws -> [Card] {
    do {
        return try await app.fetch(LatestCards(limit: 20), policy: .networkFirst).recipes.items
    } catch let error where error.remedy == .connect {
        return try app.read(LatestCards(limit: 20)).recipes.items  // synchronous: microseconds, from disk
    }
}

func follow(_ app: Partition, show: (_ cards: [Card], _ isOptimistic: Bool) -> Bool) async throws {
    for await state in try app.watch(LatestCards(limit: 20), policy: .cacheAndNetwork) {
        guard let data = state.data else { continue }  // state.missing says what the cache does not know yet
        if !show(data.recipes.items, state.isOptimistic) { break }
    }
}

func rate(_ card: Card, stars: Int, in app: Partition) async throws -> MutationReceipt {
    var expected = card
    expected.rating = Double(stars)
    return try await app.enqueue(
        Rate(id: card.id, stars: stars), optimistic: .init(rateRecipe: expected),
        options: MutationOptions(lane: "ratings"))
}

func message(for receipt: MutationReceipt) async throws -> String {
    switch try await receipt.outcome(within: .seconds(60)) {
    case .applied: "Thank you."
    case .setAside(let failure): failure?.message ?? "The rating was not taken."
    case .discarded: "The rating was given up."
    }
}

func useRecipes(at folder: URL, schema: String, server: URL) async throws -> String {
    let store = try openStore(at: folder, schema: schema)
    defer { try? store.close() }
    let app = try store.partition(server: .http(server))
    let service = Task { try await app.run() }
    defer { service.cancel() }
    let cards = try await firstScreen(app)
    let receipt = try await rate(cards[0], stars: 5, in: app)
    return try await message(for: receipt)
}

func prepareForTravel(_ app: Partition) async throws {
    _ = try await app.fetch(LatestCards(limit: 200), policy: .networkOnly)
    try await app.pin(named: "travel", LatestCards(limit: 200).operation)
}

func caption(of state: TypedWatchState<LatestCards.Data>) -> String? {
    if state.isOptimistic { return "Not sent yet" }
    if let error = state.error { return ErrorTexts.english.text(for: error) }
    return state.isStale ? "May have changed" : nil
}

func unsentCount(_ app: Partition) throws -> Int {
    try app.mutations().count { $0.state != .deadLetter }
}

func showAndRate(_ app: Partition) async throws {
    let watch = try app.watch(LatestCards(limit: 20), policy: .cacheAndNetwork)  // watch(query:cachePolicy:)
    for await state in watch {
        guard let card = state.data?.recipes.items.first else { continue }
        _ = try await app.send(Rate(id: card.id, stars: 5))  // perform(mutation:)
        break
    }
}
