import Larder

extension Story {
    private static let recipes = """
        query Recipes($first: Int, $after: String, $filter: RecipeFilter) {
          recipes(first: $first, after: $after, filter: $filter) { items { id title minutes } next }
        }
        """
    /// The server's pages say `next`, and its field takes it as `after`.
    private static let merger = PageMerger(elements: ["recipes", "items"]) { page, _ in
        page["recipes"]?["next"]?.string.map { ["after": .string($0)] }
    }

    private func recipes(_ size: Int64, _ filter: Value = .null) throws -> Pages {
        try app.with(server: http).pages(
            GraphQLOperation(Self.recipes, variables: ["first": .int(size), "filter": filter]), merger: Self.merger)
    }

    /// What the articles on fetch limits have programs write by hand.
    func listAll() async throws {
        printout.step(21, "All of a list, a list that loads on scrolling, and a filtered list")
        let before = server.requestCount
        let all = try recipes(100)
        let loading = try await timed { try await all.all() }
        let total = loading.result.objectCount
        try claims.expect("the list is whole", loading.result.isComplete, is: true)
        try claims.expect("a request for each page", server.requestCount - before, is: loading.result.pageCount)
        let again = try await recipes(100).all()
        try claims.expect("the list is there, and nothing is asked again", again, is: loading.result)
        try claims.expect("no request was sent", server.requestCount - before, is: loading.result.pageCount)

        let table = try recipes(20)
        let rows = try claims.require("the first rows come", try await table.next()).objects.count
        let more = try claims.require("more come on scrolling", try await table.next()).objects.count
        try claims.expect("page after page", [rows, more], is: [20, 20])

        let quick = try recipes(10, ["maximumMinutes": 30])
        let matches = try await quick.atLeast(25)
        try claims.expect("there are enough matches", matches.objectCount >= 25, else: "\(matches.objectCount)")
        let slow = try quick.page(0)?.objects.compactMap { $0["minutes"]?.int }.filter { $0 > 30 }
        try claims.expect("each of them matches", slow, is: [])

        printout.say("one call each: all(), next() as a table is scrolled, atLeast(25) of a filtered list")
        printout.fact("all \(total) recipes, in \(loading.result.pageCount) requests", loading.duration)
        printout.fact("matches of at most 30 minutes, in \(matches.pageCount) pages", matches.objectCount)
    }
}
