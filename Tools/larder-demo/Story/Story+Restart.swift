import Foundation
import Larder
import RecipeServer

extension Story {
    func restart() async throws {
        printout.step(7, "Restart: the store is closed and opened again")
        let before = try cookbook()
        let watcher = Observed(try app.watch(Cookbook().operation))
        _ = try await watcher.first("a watcher has its data at once") { $0.complete != nil }
        let old = app
        let requests = server.requestCount
        let closing = try await timed { try store.close() }
        _ = try await waiting(for: "the streams of a closed store end") { watcher.isEnded ? true : nil }
        let error = try await claims.failure("a closed store is not read") { () throws(LarderError) in
            _ = try old.read(Cookbook().operation)
        }
        try claims.expect("it says so", error.code, is: .parked)

        let opening = try await timed { try open() }
        let reading = try await timed { try cookbook() }
        try claims.expect("nothing was lost", reading.result == before, else: "other data")
        try claims.expect("nothing was asked of the server", server.requestCount, is: requests)
        printout.fact("closing; watchers' streams end", closing.duration)
        printout.fact("opening", opening.duration)
        printout.fact("the first read: all \(Cookbook.size - 1) recipes, as before", reading.duration)
    }

    func restartHard() async throws {
        printout.step(8, "A hard restart: another process is killed while it writes")
        let before = try cookbook()
        try store.close()
        let killed = try await KilledWriter.runAndKill(store: folder, server: server.url, claims: claims)

        let opening = try await timed { try open() }
        let title = try app.read(KilledWriter.key, Questions.title)["title"]?.string
        let number = title.flatMap(KilledWriter.number(of:))
        try claims.expect(
            "the last write that it was told of is there", (number ?? -1) >= killed.lastAcknowledged,
            else: "\(title ?? "no title"), while write \(killed.lastAcknowledged) was acknowledged")
        let requests = server.requestCount
        let latest = try app.read(Questions.latest)
        let types = Set(latest["latest"]?.elements.compactMap { $0["__typename"]?.string } ?? [])
        try claims.expect("what it fetched is there", latest["latest"]?.count, is: 50)
        try claims.expect("objects of both types are in it", types, is: ["Comment", "Recipe"])
        try claims.expect("it is read from disk", server.requestCount, is: requests)
        let fetched = try await app.fetch(Questions.latest, policy: .networkOnly)
        try claims.expect("it is what the server says", latest == fetched, else: "other data")
        var titles = titles(before)
        titles[KilledWriter.id] = title
        try claims.expect("nothing else has changed", self.titles(try cookbook()) == titles, else: "other titles")

        printout.say("a child process fetches the 50 latest recipes and comments, then writes")
        printout.say("without a pause, and gets SIGKILL in the middle of it")
        printout.fact("the last write that it was told is durable", "number \(killed.lastAcknowledged)")
        printout.fact("found on disk afterwards", "number \(number ?? -1)")
        printout.fact("opening after the crash, every page looked at", opening.duration)
        printout.fact("what the child had fetched, read from disk", "all 50")
    }

    func open() throws {
        store = try Store.open(at: folder, schemaText: [RecipeServer.schema], options: .quiet)
        app = try store.partition(server: http)
    }
}
