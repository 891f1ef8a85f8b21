import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

let orderSchema = """
    type Query
      @fieldPolicy(forField: "listOrders", keyArgs: "filter", paginationArgs: "limit nextToken")
      @fieldPolicy(forField: "orders", paginationArgs: "first after last before", maxLimit: 100)
      @fieldPolicy(forField: "ordersAt", paginationArgs: "offset limit")
      @fieldPolicy(forField: "ordersOn", paginationArgs: "page size")
      @fieldPolicy(forField: "edgesAt", paginationArgs: "offset limit")
      @fieldPolicy(forField: "notesAt", paginationArgs: "offset limit") {
      listOrders(filter: OrderFilter, limit: Int, nextToken: String): OrderList
      orders(first: Int, after: String, last: Int, before: String): OrderConnection
      ordersAt(offset: Int = 0, limit: Int): [Order]
      ordersOn(page: Int, size: Int): [Order]
      edgesAt(offset: Int = 0, limit: Int): OrderEdges
      notesAt(offset: Int = 0, limit: Int): [Note]
      order(id: ID!): Order
      shop: Shop
      mall: Mall
      depot(id: ID!): Depot
    }
    type Mutation { rename(id: ID!): Order }
    input OrderFilter { owner: String }
    type Order { id: ID! sku: String }
    type Note { sku: String }
    type Mall { name: String shop: Shop }
    type Depot
      @fieldPolicy(forField: "orders", paginationArgs: "limit nextToken")
      @fieldPolicy(forField: "ordersAt", paginationArgs: "offset limit") {
      id: ID!
      orders(limit: Int, nextToken: String): OrderList
      ordersAt(offset: Int = 0, limit: Int): [Order]
    }
    type Shop @fieldPolicy(forField: "orders", paginationArgs: "limit nextToken") {
      name: String
      orders(limit: Int, nextToken: String): OrderList
    }
    type OrderList { items: [Order] nextToken: String }
    type OrderConnection { edges: [OrderEdge] nodes: [Order] pageInfo: PageInfo }
    type OrderEdges { edges: [OrderEdge] }
    type OrderEdge { cursor: String node: Order }
    type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }
    """

let orderList = GraphQLOperation(
    "query L($limit: Int, $nextToken: String) { listOrders(limit: $limit, nextToken: $nextToken) "
        + "{ items { sku } nextToken } }")
let orderConnection = GraphQLOperation(
    "query C($first: Int, $after: String, $last: Int, $before: String) { orders(first: $first, after: $after, "
        + "last: $last, before: $before) { edges { node { sku } } "
        + "pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }")
let ordersAt = GraphQLOperation(
    "query A($offset: Int, $limit: Int) { ordersAt(offset: $offset, limit: $limit) { sku } }")

/// A server of lists, whose pages a test says; it notes what it was asked.
final class OrderDesk: Sendable {
    private let pages: Mutex<[String: String]>
    private let asked = Mutex<[String]>([])
    private let held = Mutex<(@Sendable (_ token: String) async -> Void)?>(nil)

    /// - Parameter pages: By token, what the page is made of; "" for the first.
    init(_ pages: [String: String]) { self.pages = Mutex(pages) }

    /// The tokens, offsets or cursors that were asked for, each with the limit.
    var requests: [String] { asked.withLock { $0 } }

    func set(_ page: String, at token: String) { pages.withLock { $0[token] = page } }

    /// Runs `body` before each answer.
    func hold(_ body: @escaping @Sendable (_ token: String) async -> Void) { held.withLock { $0 = body } }

    func removePage(at token: String) { pages.withLock { $0[token] = nil } }

    /// Six orders, of which the last come first.
    static let backward = [
        "": connectionPage(5...6, previous: "x"), "x": connectionPage(3...4, previous: "y"),
        "y": connectionPage(1...2),
    ]

    var transport: ScriptedServer { ScriptedServer { [self] request in await answer(request) } }

    func answer(_ request: GraphQLRequest) async -> String {
        let values = request.values
        let token =
            ["nextToken", "after", "before", "offset", "page", "id"].lazy
            .compactMap { name in values[name].flatMap { $0 is NSNull ? nil : "\($0)" } }.first ?? ""
        let limit =
            ["limit", "first", "last", "size"].lazy
            .compactMap { name in values[name].flatMap { $0 is NSNull ? nil : "\($0)" } }.first ?? "-"
        asked.withLock { $0.append("\(token)/\(limit)") }
        await held.withLock { $0 }?(token)
        guard let page = pages.withLock({ $0[token] }) else {
            return #"{"data":null,"errors":[{"message":"The pagination token has expired."}]}"#
        }
        return #"{"data":{\#(page)}}"#
    }

    /// A page of a token list.
    static func tokenPage(_ ids: some Sequence<Int>, next: String?) -> String {
        let token = next.map { "\"\($0)\"" } ?? "null"
        return #""listOrders":{"__typename":"OrderList","items":[\#(objects(ids))],"nextToken":\#(token)}"#
    }

    static func connectionPage(_ ids: some Sequence<Int>, previous: String? = nil, next: String? = nil) -> String {
        let edges = ids.map { #"{"__typename":"OrderEdge","node":\#(object($0))}"# }.joined(separator: ",")
        return #""orders":{"__typename":"OrderConnection","edges":[\#(edges)],"pageInfo":{"__typename":"PageInfo","#
            + #""hasNextPage":\#(next != nil),"hasPreviousPage":\#(previous != nil),"#
            + #""startCursor":\#(previous.map { "\"\($0)\"" } ?? "null"),"#
            + #""endCursor":\#(next.map { "\"\($0)\"" } ?? "null")}}"#
    }

    static func objects(_ ids: some Sequence<Int>) -> String { ids.map(object).joined(separator: ",") }

    static func object(_ id: Int) -> String { #"{"__typename":"Order","id":"\#(id)","sku":"s\#(id)"}"# }
}

/// Runs `body` with a list whose pages a desk gives.
///
/// - Parameter requests: What the desk is to have been asked for when the store has closed; nil: not looked at.
func withPages(
    _ pages: [String: String], _ operation: GraphQLOperation = orderList, _ variables: [String: Value] = [:],
    schema: String = orderSchema, asking requests: [String]? = nil, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (Pages, OrderDesk, Partition) async throws -> Void
) async throws {
    let desk = OrderDesk(pages)
    var operation = operation
    operation.variables.merge(variables) { $1 }
    try await withStoreFixture(desk.transport, schema: schema) { [operation] app in
        try await body(try app.pages(operation), desk, app)
    }
    if let requests { #expect(desk.requests == requests, sourceLocation: sourceLocation) }
}

extension Page {
    var skus: [String] { objects.compactMap { $0["sku"]?.string } }
}

extension Pages {
    /// What all loaded pages show.
    func skus() async throws -> [String] {
        var found: [String] = []
        for index in 0..<(try await status().pageCount) { found += try page(index)?.skus ?? [] }
        return found
    }
}

func skus(_ ids: some Sequence<Int>) -> [String] { ids.map { "s\($0)" } }

/// The error that the body throws.
func larderError<Result>(_ body: () async throws -> Result) async -> LarderError? {
    do { _ = try await body() } catch { return error as? LarderError }
    return nil
}
