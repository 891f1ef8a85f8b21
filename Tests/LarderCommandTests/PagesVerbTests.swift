import Foundation
import LarderTestSupport
import Testing

@Suite(
    "pages", .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"), .timeLimit(.minutes(10)))
struct PagesVerbTests {
    private func withList(_ body: (CommandFixture, [String]) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            try await ForeignServer.run("pages.py", "2500") { server in
                let document = """
                    query L($limit: Int, $nextToken: String) {
                      listOrders(limit: $limit, nextToken: $nextToken) { items { sku } nextToken }
                    }
                    """
                try await body(
                    fixture,
                    [
                        "pages", "--endpoint", server.url.absoluteString, "--schema",
                        ServerProcess.folder.appending(path: "pages.graphqls").path, "--operation",
                        try fixture.write(document, to: "list.graphql"),
                    ])
            }
        }
    }

    @Test("A list is loaded a page at a time, to a count, and to its end, and says how far it is")
    func loads() async throws {
        try await withList { fixture, arguments in
            #expect(try await fixture.larder(arguments).output == "1 page, 1000 objects\n")
            let two = try await fixture.larder(arguments + ["--at-least", "1001"])
            #expect(two.output == "2 pages, 2000 objects\n")
            #expect(two.errors == "larder: 2 pages, 2000 objects\n")
            let whole = try await fixture.larder(arguments + ["--all"])
            #expect(whole.output == "3 pages, 2500 objects, the whole list\n")
            #expect(whole.errors == "larder: 3 pages, 2500 objects, the whole list\n")
            let again = try await fixture.larder(arguments + ["--all", "--start-over"])
            #expect(again.errors.split(separator: "\n").count == 3)
        }
    }

    @Test("The result under --json is documented")
    func printsJSON() async throws {
        try await withList { fixture, arguments in
            let outcome = try await fixture.larder(arguments + ["--json", "--all"])
            #expect(
                outcome.output == #"""
                    {"larder":1,"command":"pages","result":{"pages":3,"objects":2500,"isComplete":true}}

                    """#)
            var documented = try DocumentedResults()
            try documented.compare("`pages`", outcome.output)
            documented.finish()
            #expect(documented.problems == [])
        }
    }

    @Test("JSON says whether the list is complete where one page was asked for, or so many objects")
    func completeInJSON() async throws {
        try await withList { fixture, arguments in
            for (more, isComplete) in [([], false), (["--at-least", "2001"], true)] {
                let outcome = try await fixture.larder(arguments + ["--json"] + more)
                #expect(outcome.output.contains(#""isComplete":\#(isComplete)}"#), "\(outcome)")
            }
        }
    }

    @Test(
        "Arguments that contradict each other are refused",
        arguments: [["--all", "--at-least", "1"], ["--at-least", "0"], ["--start-over"]])
    func refuses(more: [String]) async throws {
        try await withList { fixture, arguments in
            let outcome = try await fixture.larder(arguments + more)
            #expect(outcome.status == 2)
        }
    }

    @Test("pages fails on errors beside a page, and takes the page with --error-policy partial")
    func errorPolicy() async throws {
        try await withList { fixture, arguments in
            // The server refuses `orders(first: -1)`, and answers `listOrders`.
            let schema = """
                directive @fieldPolicy(forField: String!, paginationArgs: [String!]) repeatable on OBJECT
                type Query @fieldPolicy(forField: "listOrders", paginationArgs: ["limit", "nextToken"]) {
                  listOrders(limit: Int, nextToken: String): OrderList
                  orders(first: Int): OrderConnection
                }
                type OrderList { items: [Order] nextToken: String }
                type OrderConnection { nodes: [Order] }
                type Order { id: ID! sku: String! }
                """
            let document = """
                query L($limit: Int, $nextToken: String) {
                  listOrders(limit: $limit, nextToken: $nextToken) { items { sku } nextToken }
                  orders(first: -1) { nodes { sku } }
                }
                """
            let asking =
                try Array(arguments.prefix(3)) + [
                    "--schema", fixture.write(schema, to: "orders.graphqls"), "--operation",
                    fixture.write(document, to: "both.graphql"),
                ]
            let failed = try await fixture.larder(asking)
            #expect(failed.status == 1 && failed.output == "", "\(failed)")
            let taken = try await fixture.larder(asking + ["--error-policy", "partial"])
            #expect(taken.status == 0 && taken.output == "1 page, 1000 objects\n", "\(taken)")
        }
    }

    @Test("Of a list that goes backward pages loads the page before those that the store has")
    func goesBackward() async throws {
        try await withList { fixture, arguments in
            let document = """
                query B($last: Int, $before: String) {
                  orders(last: $last, before: $before) {
                    edges { node { sku } } pageInfo { hasPreviousPage startCursor }
                  }
                }
                """
            let asking =
                try Array(arguments.dropLast()) + [
                    fixture.write(document, to: "back.graphql"), "--variables",
                    fixture.write(#"{"last":1000}"#, to: "last.json"),
                ]
            for told in ["1 page, 1000 objects\n", "2 pages, 2000 objects\n"] {
                let loaded = try await fixture.larder(asking)
                #expect(loaded.output == told, "\(loaded)")
            }
        }
    }

    @Test("Where the store has the whole list, pages loads nothing more, and that is no failure")
    func wholeAgain() async throws {
        try await withList { fixture, arguments in
            #expect(try await fixture.larder(arguments + ["--all"]).status == 0)
            let again = try await fixture.larder(arguments)
            #expect(again.status == 0, "\(again.errors)")
            #expect(again.output == "3 pages, 2500 objects, the whole list\n")
        }
    }
}
