import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Loads all pages of a list, and says each page that the server was asked for, until it kills itself.
struct Paging {
    static let schema = """
        type Query @fieldPolicy(forField: "orders", paginationArgs: "limit nextToken") {
          orders(limit: Int, nextToken: String): OrderList
        }
        type Order { id: ID! }
        type OrderList { items: [Order] nextToken: String }
        """
    static let list = GraphQLOperation(
        "query L($limit: Int, $nextToken: String) { orders(limit: $limit, nextToken: $nextToken) "
            + "{ items { id } nextToken } }")
    static let pageCount = 8
    static let pageSize = 10

    /// Counts, and kills the program at the last.
    private final class Steps: Sendable {
        private let count = Atomic(0)
        private let last: Int

        init(last: Int) { self.last = last }

        func add() {
            guard count.add(1, ordering: .relaxed).newValue == last else { return }
            kill(getpid(), SIGKILL)
            sleep(3600)
        }
    }

    let folder: URL

    /// - Parameter step: After how many steps it kills itself; each request is one, and each page that was stored.
    func run(killedAfter step: Int) async throws {
        let steps = Steps(last: step)
        let server = ScriptedServer { request in
            let number = (request.values["nextToken"] as? String).flatMap { Int($0) } ?? 0
            say("asked \(number)")
            steps.add()
            let items = (0..<Self.pageSize).map {
                #"{"__typename":"Order","id":"\#(number * Self.pageSize + $0)"}"#
            }
            let next = number + 1 < Self.pageCount ? "\"\(number + 1)\"" : "null"
            return #"{"data":{"orders":{"__typename":"OrderList","items":[\#(items.joined(separator: ","))],"#
                + #""nextToken":\#(next)}}}"#
        }
        let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
        let pages = try store.partition(server: server).pages(Self.list)
        try await pages.all { _ in steps.add() }
        let ids = try (0..<Self.pageCount).flatMap { index in
            try pages.page(index)?.objects.compactMap { $0["id"]?.string } ?? []
        }
        say("done \(ids.joined(separator: " "))")
        try store.close()
    }
}
