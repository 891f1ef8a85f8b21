import Foundation
package import Larder
package import LarderTesting
import Synchronization

/// A server of orders in ascending order of their numbers, three to a page, by tokens that say where a page begins.
/// Mutations add an order and drop one.
package final class OrderBook: Sendable {
    package static let schema = """
        type Query @fieldPolicy(forField: "listOrders", paginationArgs: "limit nextToken") {
          listOrders(limit: Int, nextToken: String): OrderList
        }
        type Mutation { add(add: Int!): Order drop(drop: Int!): Order }
        type Order { id: ID! sku: String }
        type OrderList { items: [Order] nextToken: String }
        """
    package static let list = GraphQLOperation(
        "query L($nextToken: String) { listOrders(limit: 3, nextToken: $nextToken) { items { id sku } nextToken } }")
    private static let pageSize = 3

    private let rows = Mutex<[Int]>([])

    package init(_ ids: [Int]) { rows.withLock { $0 = ids } }

    package var ids: [Int] { rows.withLock { $0 } }

    package func insert(_ id: Int) { rows.withLock { $0 = Set($0 + [id]).sorted() } }
    package func remove(_ id: Int) { rows.withLock { $0.removeAll { $0 == id } } }

    /// What a page beginning after an order has, and the order after which the next one begins.
    package func page(after last: Int?) -> (ids: [Int], next: Int?) {
        let rest = ids.filter { $0 > last ?? -1 }
        let page = Array(rest.prefix(Self.pageSize))
        return (page, rest.count > page.count ? page.last : nil)
    }

    /// The mutation that adds an order, or drops one.
    package static func change(_ name: String, _ id: Int) -> GraphQLOperation {
        GraphQLOperation(
            "mutation M($\(name): Int!) { \(name)(\(name): $\(name)) { id sku } }", variables: [name: .int(Int64(id))])
    }

    /// Queues that mutation, which is seen at once, at its place in the list.
    package static func queue(_ name: String, _ id: Int, in pages: Pages, _ app: Partition) async throws {
        let change =
            name == "add"
            ? try pages.inserting("Order:\(id)", at: .ascending(field: "id")) : try pages.removing("Order:\(id)")
        let response: Value = [name: ["__typename": "Order", "id": .string("\(id)"), "sku": .string("s\(id)")]]
        try await app.enqueue(
            Self.change(name, id), options: MutationOptions(optimisticResponse: response, listChanges: [change]))
    }

    /// - Parameter told: Of each request, before it is answered: `page`, or of a mutation `add 7` or `drop 7`.
    package func transport(_ told: @escaping @Sendable (String) -> Void = { _ in }) -> ScriptedServer {
        ScriptedServer(.header(name: "Idempotency-Key")) { [self] request in
            for name in ["add", "drop"] {
                guard let id = request.values[name] as? Int else { continue }
                if name == "add" { insert(id) } else { remove(id) }
                told("\(name) \(id)")
                return #"{"data":{"\#(name)":\#(Self.object(id))}}"#
            }
            told("page")
            let page = page(after: (request.values["nextToken"] as? String).flatMap { Int($0) })
            return #"{"data":{"listOrders":{"__typename":"OrderList","items":["#
                + page.ids.map(Self.object).joined(separator: ",")
                + #"],"nextToken":\#(page.next.map { "\"\($0)\"" } ?? "null")}}}"#
        }
    }

    private static func object(_ id: Int) -> String { #"{"__typename":"Order","id":"\#(id)","sku":"s\#(id)"}"# }
}
