import Foundation
import Larder
import LarderHTTP

struct LatestRecipes: TypedOperation {
    struct Data: Decodable, Sendable { var recipes: Page }
    struct Page: Decodable, Sendable { var items: [Recipe] }
    struct Recipe: Decodable, Sendable { var title: String }
    var operation: GraphQLOperation { GraphQLOperation("{ recipes(first: 20) { items { title } } }") }
}

func showRecipes(folder: URL, schema: String, server: URL) async throws {
    let store = try Store.open(at: folder, schemaText: [schema])
    try await HTTPTransport.withTransport(to: server) { http in
        let app = try store.partition(transport: http)
        let latest = try await app.fetch(LatestRecipes(), policy: .networkFirst)
        let cached = try app.read(LatestRecipes())  // no await: microseconds, from disk
        print(latest.recipes.items.count, cached.recipes.items.first?.title ?? "none")
        for await state in try app.watch(LatestRecipes().operation) {
            print(state.complete?["recipes"]?["items"]?.count ?? 0)  // and again whenever anything changes it
        }
    }
}
