import Larder
import RecipeServer

extension Story {
    /// A recipe that the cookbook holds, and that is only ever in that list.
    static let listed = "42"
    /// A recipe that is not in the list.
    static let unlisted = "900"

    func fetchCold() async throws {
        printout.step(2, "The first fetch: nothing is on disk yet")
        let empty = try app.read(Cookbook().operation, allowsPartial: true)
        try claims.expect("a new store knows nothing", empty.isComplete, is: false)
        let (fetched, duration) = try await timed { try await app.fetch(Cookbook().operation) }
        let exchange = try claims.require("the fetch went to the server", http.last)
        try claims.expect("one request is sent", server.requestCount, is: 1)
        let data = try fetched.decode(Cookbook.Data.self)
        try claims.expect("the page holds what was asked for", data.recipes.items.count, is: Cookbook.size)
        let keys = data.keys
        for key in keys {
            let parts = key.split(separator: ":", maxSplits: 1).map(String.init)
            guard let type = parts.first, let id = parts.last else { continue }
            let stored = try app.read(CacheKey(key), Questions.identity(of: type))["id"]?.string
            guard stored == id else {
                throw Mismatch(claim: "\(key) is stored under its key", expected: id, found: stored ?? "nothing")
            }
        }
        try claims.expect("every object is stored under its key", keys.isEmpty, is: false)
        fetchDuration = duration

        printout.say("\(Cookbook.size) of \(Figures.text(data.recipes.total)) recipes, with all that belongs to them")
        printout.fact("the answer", Figures.text(bytes: exchange.bytes))
        printout.fact("objects in it, each stored once, under a key such as Recipe:42", keys.count)
        printout.fact("the server, HTTP and the loopback", exchange.duration)
        printout.fact("parsed, split into records, durable on disk", duration - exchange.duration)
        printout.fact("together", duration)
    }

    func readAgain() async throws {
        printout.step(3, "The same question again, from disk")
        let requests = server.requestCount
        let fetched = try await app.fetch(Cookbook().operation, policy: .networkOnly)
        try claims.expect("the cache answers as the server does", try cookbook() == fetched, else: "other data")
        let sent = server.requestCount - requests

        readDuration = try median(of: 40) { _ = try app.read(Cookbook().operation) }
        let decoded = try median(of: 20) { _ = try app.read(Cookbook()) }
        let one = try median(of: 400) { _ = try app.read("Recipe:\(Self.listed)", Questions.card) }
        try claims.expect("cached reads send nothing", server.requestCount, is: requests + sent)

        printout.say("the same data, field by field; no await, no request")
        printout.fact("the whole answer (median of 40 reads)", readDuration)
        printout.fact("that is faster than the fetch by", Figures.ratio(fetchDuration, readDuration))
        printout.fact("the same, decoded into Swift structs", decoded)
        printout.fact("two fields of one recipe", one)
    }

    func findByArgument() async throws {
        printout.step(5, "recipe(id: \"\(Self.listed)\"), a field never asked for before")
        let before = server.requestCount
        let (answer, duration) = try await timed { try await app.fetch(Questions.recipe(Self.listed)) }
        let found = try claims.require("the recipe is found", answer["recipe"]?["title"]?.string)
        try claims.expect("it is the one of the list", found, is: titles(try cookbook())[Self.listed] ?? "none")
        try claims.expect("no request is sent for it", server.requestCount, is: before)
        printout.say("answered from the list: its argument names the object (\"\(found)\")")
        printout.fact("requests the server saw, before and after", "\(before) and \(server.requestCount)")
        printout.fact("the answer, its question compiled for the first time", duration)

        let other = try await app.fetch(Questions.recipe(Self.unlisted))
        _ = try claims.require("a recipe outside the list is fetched", other["recipe"]?["title"]?.string)
        try claims.expect("one request is sent for it", server.requestCount, is: before + 1)
        printout.fact("recipe(id: \"\(Self.unlisted)\"), which was in no list: requests", 1)
    }
}
