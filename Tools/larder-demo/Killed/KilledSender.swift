import Foundation
import Larder
import LarderHTTP
import RecipeServer

/// A process that queues a mutation, unless one is queued already, and sends what is queued, until it is killed.
enum KilledSender {
    static let id = "9"
    static let key: CacheKey = "Recipe:\(id)"
    static let stars: Int64 = 5

    /// What the child does.
    static func send(store folder: URL, server: URL) async throws {
        let store = try Store.open(at: folder, schemaText: [RecipeServer.schema], options: .quiet)
        try await HTTPTransport.withTransport(to: server, options: .ofDemonstration) { http in
            let app = try store.partition(server: http)
            let runner = MutationRunner(app)
            guard try !app.hasUnsentMutations() else { return try await runner.drain() }
            let rating = try ExpectedRating(of: id, in: app, with: stars)
            let receipt = try await app.enqueue(
                Questions.rate(id, stars: stars), options: MutationOptions(optimisticResponse: rating.response))
            let sending = Task { try await runner.run() }
            // Set as soon as the server could not be reached; never where it answers.
            while try receipt.status()?.failure == nil { try await Task.sleep(for: .milliseconds(1)) }
            // No attempt is under way when the signal comes.
            sending.cancel()
            try await sending.value
            let count = try app.read(key, Questions.card)["ratingCount"]?.int ?? -1
            try FileHandle.standardOutput.write(contentsOf: Data("\(count)\n".utf8))
            try await Task.sleep(for: patience)
        }
    }
}
