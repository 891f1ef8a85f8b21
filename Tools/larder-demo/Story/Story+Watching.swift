import Larder
import RecipeServer

extension Story {
    func watchOtherQuery() async throws {
        printout.step(4, "Watching the list while another question changes a recipe")
        let id = "7"
        let title = "Grandmother's secret stew"
        let old = titles(try cookbook())[id] ?? "none"
        let author = try claims.require(
            "the list's first recipe has an author", try cookbook()["recipes"]?["items"]?[0]?["author"]?["id"]?.string)

        let list = Observed(try app.watch(Cookbook().operation))
        let other = Observed(try app.watch(Questions.author(author)))
        let everything = Observed(app.watch("Author:\(author)"))
        _ = try await list.first("a watcher of the list has its data at once") { $0.complete != nil }
        _ = try await other.first("a watcher of an author has its data at once") { $0.complete != nil }
        _ = try await everything.first("a watcher of an object hears that it is there") { $0.presence == .present }

        _ = try await app.send(Questions.rename(id, to: title), within: patience)
        let answered = try claims.require("the mutation went to the server", http.last)
        let heard = try await list.first("the watcher of the list hears of the new title", after: 1)
        try claims.expect("the list has the new title", titles(heard.state.complete)[id], is: title)

        // The next thing that the other watchers hear must be this, and not the mutation before it.
        let biography = Value.object(["id": .string(author), "bio": "Retired."])
        try await app.write("Author:\(author)", Questions.biography, json: biography.json)
        let next = try await other.first("a watcher hears of what concerns it", after: 1)
        try claims.expect("it heard nothing before", next.state.complete?["author"]?["bio"]?.string, is: "Retired.")
        try claims.expect("it was given two states", other.count, is: 2)
        let change = try await everything.first("a watcher of an object hears of its change", after: 1)
        try claims.expect("it hears what changed, and nothing before", change.state.changedFields, is: ["bio"])

        printout.say("a mutation renames Recipe:\(id), from \"\(old)\" to \"\(title)\"")
        printout.fact(
            "answer arrived -> on disk -> the watcher has the new list of \(Cookbook.size)",
            answered.arrival.duration(to: heard.time))
        printout.fact("a watcher of Author:\(author) meanwhile heard", "nothing")
    }

    func watchObject() async throws {
        printout.step(6, "Watching one object by its key, and removing it")
        let id = "43"
        let key: CacheKey = "Recipe:43"
        let title = titles(try cookbook())[id] ?? "none"
        let object = Observed(app.watch(key))
        let card = Observed(try app.watch(key, Questions.card))
        let list = Observed(try app.watch(Cookbook().operation))
        let before = try await card.first("a watcher of a fragment has its data at once") { $0.complete != nil }
        _ = try await object.first("a watcher of an object hears that it is there") { $0.presence == .present }
        _ = try await list.first("a watcher of the list has its data at once") { $0.complete != nil }
        let count = try claims.require("the recipe has a count of ratings", before.state.complete?["ratingCount"]?.int)

        _ = try await app.send(Questions.rate(id, stars: 5), within: patience)
        let answered = try claims.require("the mutation went to the server", http.last)
        let change = try await object.first("the object's watcher hears of the rating", after: 1)
        try claims.expect(
            "it hears which fields changed", change.state.changedFields.sorted(), is: ["rating", "ratingCount"])
        let rated = try await card.first("the fragment's watcher hears of the rating", after: 1)
        try claims.expect(
            "the fragment has one rating more", rated.state.complete?["ratingCount"]?.int, is: count + 1)
        printout.say("\(key) (\"\(title)\") is given five stars")
        printout.fact(
            "changed fields, told to the object's watcher",
            change.state.changedFields.sorted().map(\.text).joined(separator: ", "))
        printout.fact("ratings, told to the watcher of a fragment on it", "\(count) -> \(count + 1)")
        printout.fact("answer arrived -> on disk -> that watcher", answered.arrival.duration(to: rated.time))

        try await app.remove(key, as: .deleted)
        _ = try await object.first("the object's watcher hears that it is deleted") { $0.presence == .deleted }
        _ = try await card.first("the fragment's watcher hears that it is deleted") { $0.isDeleted }
        let shorter = try await list.first("the list goes without it") { state in
            state.complete?["recipes"]?["items"]?.count == Cookbook.size - 1
        }
        let hasIt = titles(shorter.state.complete).keys.contains(id)
        try claims.expect("the deleted recipe is not in the list", hasIt, is: false)
        let answer = try app.read(Questions.recipe(id))
        try claims.expect("recipe(id:) answers null for it", answer["recipe"]?.isNull, is: true)
        printout.say("then it is deleted; all three watchers hear of it")
        printout.fact("recipes in the watched list", "\(Cookbook.size) -> \(Cookbook.size - 1)")
        printout.fact("recipe(id: \"\(id)\") from disk", "null")
    }
}
