import Foundation
package import Larder
package import LarderTesting
import Synchronization

/// A server of orders in ascending order of their numbers, three to a page. Mutations add an order and drop one.
package final class OrderBook: Sendable {
    /// How its list goes from page to page.
    package enum Kind: String, Sendable, CaseIterable {
        /// By tokens that say where a page begins.
        case tokens
        /// As a Relay connection, by cursors.
        case connection
        /// As a Relay connection from its end on.
        case backward
    }

    package static let schema = """
        type Query
          @fieldPolicy(forField: "listOrders", paginationArgs: "limit nextToken")
          @fieldPolicy(forField: "orders", paginationArgs: "first after last before") {
          listOrders(limit: Int, nextToken: String): OrderList
          orders(first: Int, after: String, last: Int, before: String): OrderConnection
        }
        type Mutation { add(add: Int!): Order drop(drop: Int!): Order }
        type Order { id: ID! sku: String }
        type OrderList { items: [Order] nextToken: String }
        type OrderConnection { edges: [OrderEdge] pageInfo: PageInfo }
        type OrderEdge { node: Order }
        type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }
        """
    private static let pageSize = 3

    package let kind: Kind
    private let rows = Mutex<[Int]>([])

    package init(_ ids: [Int], _ kind: Kind = .tokens) {
        self.kind = kind
        rows.withLock { $0 = ids }
    }

    package var ids: [Int] { rows.withLock { $0 } }

    package func insert(_ id: Int) { rows.withLock { $0 = Set($0 + [id]).sorted() } }
    package func remove(_ id: Int) { rows.withLock { $0.removeAll { $0 == id } } }

    /// What a page of the list has, and where the next one begins, or the one before in a list that goes backward.
    ///
    /// - Parameter token: "" for the first page.
    package func page(at token: String) -> (ids: [Int], next: String?) {
        let rest = kind == .backward ? ids.filter { $0 < Int(token) ?? .max } : ids.filter { $0 > Int(token) ?? -1 }
        let page = Array(kind == .backward ? rest.suffix(Self.pageSize) : rest.prefix(Self.pageSize))
        let edge = kind == .backward ? page.first : page.last
        return (page, rest.count > page.count ? edge.map { "\($0)" } : nil)
    }

    /// The list's operation.
    package var list: GraphQLOperation {
        switch kind {
        case .tokens:
            GraphQLOperation(
                "query L($at: String) { listOrders(limit: 3, nextToken: $at) { items { id sku } nextToken } }")
        case .connection:
            GraphQLOperation(
                "query L($at: String) { orders(first: 3, after: $at) { edges { node { id sku } } "
                    + "pageInfo { hasNextPage endCursor } } }")
        case .backward:
            GraphQLOperation(
                "query L($at: String) { orders(last: 3, before: $at) { edges { node { id sku } } "
                    + "pageInfo { hasPreviousPage startCursor } } }")
        }
    }

    /// The operation of one page.
    package func list(at token: String) -> GraphQLOperation {
        var list = list
        if !token.isEmpty { list.variables["at"] = .string(token) }
        return list
    }

    /// The numbers of the orders in an answer to that.
    package func ids(in response: Response) -> [Int] {
        let objects: [ResponseValue?] =
            switch kind {
            case .tokens: response["listOrders"]?["items"]?.elements ?? []
            case .connection, .backward: (response["orders"]?["edges"]?.elements ?? []).map { $0["node"] }
            }
        return objects.compactMap { $0?["id"]?.string.flatMap { Int($0) } }
    }

    /// Where the next page begins, or the one before in a list that goes backward, as an answer says.
    package func next(in response: Response) -> String? {
        let info = response["orders"]?["pageInfo"]
        switch kind {
        case .tokens: return response["listOrders"]?["nextToken"]?.string
        case .connection: return info?["hasNextPage"]?.boolean == true ? info?["endCursor"]?.string : nil
        case .backward: return info?["hasPreviousPage"]?.boolean == true ? info?["startCursor"]?.string : nil
        }
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
            return answer(at: request.values["at"] as? String ?? "")
        }
    }

    private func answer(at token: String) -> String {
        let page = page(at: token)
        let next = page.next.map { "\"\($0)\"" } ?? "null"
        if kind == .tokens {
            return #"{"data":{"listOrders":{"__typename":"OrderList","items":["#
                + page.ids.map(Self.object).joined(separator: ",") + #"],"nextToken":\#(next)}}}"#
        }
        let edges = page.ids.map { #"{"__typename":"OrderEdge","node":\#(Self.object($0))}"# }.joined(separator: ",")
        let (has, cursor) =
            kind == .backward ? ("hasPreviousPage", "startCursor") : ("hasNextPage", "endCursor")
        return #"{"data":{"orders":{"__typename":"OrderConnection","edges":[\#(edges)],"pageInfo":{"#
            + #""__typename":"PageInfo","\#(has)":\#(page.next != nil),"\#(cursor)":\#(next)}}}}"#
    }

    private static func object(_ id: Int) -> String { #"{"__typename":"Order","id":"\#(id)","sku":"s\#(id)"}"# }
}
