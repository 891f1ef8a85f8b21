import Foundation
import Larder
import LarderHTTP

struct LatestRecipes: TypedOperation {
    struct Data: Codable, Sendable { var recipes: Page }
    struct Page: Codable, Sendable { var items: [Recipe] }
    struct Recipe: Codable, Sendable { var title: String }
    var operation: GraphQLOperation { GraphQLOperation("{ recipes(first: 20) { items { title } } }") }
}

func showRecipes(folder: URL, schema: String, server: URL) async throws {
    let store = try Store.open(at: folder, schemaText: [schema])
    let app = try store.partition(server: .http(server))
    let service = Task { try await app.run() }  // sends what is queued, now and after every restart
    defer { service.cancel() }
    for await state in try app.watch(LatestRecipes(), policy: .cacheAndNetwork) {
        print(state.data?.recipes.items.map(\.title) ?? [])  // from disk at once, and again after each change
        if let error = state.error { print(ErrorTexts.english.text(for: error)) }
    }
}
