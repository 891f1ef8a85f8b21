import Foundation
import Larder
import LarderHTTP
import RecipeServer

/// A process that fetches, then writes without end and says of each write that it is durable, until it is killed.
enum KilledWriter {
    static let id = "8"
    static let key: CacheKey = "Recipe:\(id)"
    /// It ends by itself where no process kills it.
    private static let mostWrites = 100_000
    /// How many acknowledged writes the parent waits for.
    private static let enough = 100

    struct Killed {
        var lastAcknowledged: Int
    }

    private static func title(_ number: Int) -> String { "Draft \(number)" }

    static func number(of title: String) -> Int? {
        title.hasPrefix("Draft ") ? Int(title.dropFirst("Draft ".count)) : nil
    }

    /// What the child does.
    static func write(store folder: URL, server: URL) async throws {
        let store = try Store.open(at: folder, schemaText: [RecipeServer.schema])
        try await HTTPTransport.withTransport(to: server) { http in
            let app = try store.partition(server: http)
            _ = try await app.fetch(Questions.latest)
            for number in 1...mostWrites {
                let json = Value.object(["id": .string(id), "title": .string(title(number))]).json
                try await app.write(key, Questions.title, json: json)
                try FileHandle.standardOutput.write(contentsOf: Data("\(number)\n".utf8))
            }
        }
    }

    /// Starts the child, lets it write for a while, and kills it.
    static func runAndKill(store: URL, server: URL, claims: Claims) async throws -> Killed {
        let said = try await KilledChild.runAndKill(.writer, store: store, server: server, claims: claims) { said in
            (said.lastNumber ?? 0) >= enough
        }
        return Killed(lastAcknowledged: try claims.require("the child has written", said.lastNumber))
    }
}
