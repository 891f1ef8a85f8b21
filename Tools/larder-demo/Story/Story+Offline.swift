import Larder
import RecipeServer

extension Story {
    func loseServer() async throws {
        printout.step(9, "The server is gone")
        let before = try cookbook()
        let requests = server.requestCount
        try await server.stop()

        let reading = try await timed { try cookbook() }
        try claims.expect("the cache is read without a server", reading.result == before, else: "other data")
        let (fallen, waited) = try await timed {
            try await app.fetch(Cookbook().operation, policy: .networkFirst, options: FetchOptions(timeout: patience))
        }
        try claims.expect("networkFirst falls back to the cache", fallen == before, else: "other data")
        let error = try await claims.failure("networkOnly gives no answer") { () async throws(LarderError) in
            _ = try await app.fetch(
                Cookbook().operation, policy: .networkOnly, options: FetchOptions(timeout: patience))
        }
        try claims.expect("networkOnly says why it has no answer", error.code.rawValue, is: "transport.unreachable")
        try claims.expect("the server saw nothing of it", server.requestCount, is: requests)
        printout.fact("reading on", reading.duration)
        printout.fact("networkFirst: refused, then answered from disk", waited)
        printout.fact("networkOnly: a typed error", error.code.rawValue)
        printout.say("\"\(error.message)\"")
    }

    func askUnknown() async throws {
        printout.step(10, "Asking what was never fetched")
        let question = Questions.unknown(known: Self.listed, never: "901")
        let partial = try app.read(question, allowsPartial: true)
        let missing = partial.missing.map(\.description)
        try claims.expect("the missing paths are told", missing.sorted(), is: ["known.nutrition", "never"])
        let title = try claims.require("what is known is there", partial["known"]?["title"]?.string)
        let error = try await claims.failure("a read that wants all of it fails") { () throws(LarderError) in
            _ = try app.read(question)
        }
        try claims.expect("its error says that something is missing", error.code, is: .miss)
        try claims.expect("and which paths", error.missing, is: partial.missing)
        printout.say("a title that is known, a field never asked for, a recipe never seen:")
        printout.fact("known.title", "\"\(title)\"")
        for path in missing { printout.fact(path, "missing") }
        printout.fact("without leave for partial answers: a typed error", error.code.rawValue)
    }
}
