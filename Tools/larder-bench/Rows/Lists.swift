import Foundation
import Larder

/// Lists of pages, from a server in the same process.
extension Bench {
    private static let schema = """
        type Query @fieldPolicy(forField: "listOrders", keyArgs: "filter", paginationArgs: "limit nextToken") {
          listOrders(filter: String, limit: Int, nextToken: String): OrderList
        }
        type Order { id: ID! sku: String price: Int owner: String }
        type OrderList { items: [Order] nextToken: String }
        """

    private static func orders(_ size: Int, _ filter: String = "") -> GraphQLOperation {
        GraphQLOperation(
            "query L($filter: String, $limit: Int, $nextToken: String) { listOrders(filter: $filter, limit: $limit, "
                + "nextToken: $nextToken) { items { id sku price owner } nextToken } }",
            variables: ["filter": .string(filter), "limit": .int(Int64(size))])
    }

    private func withOrders<Result>(
        _ server: OrderServer, _ body: (Partition) async throws -> Result
    ) async throws -> Result {
        let path = freshPath("orders")
        defer { remove(path) }
        let store = try Store.open(at: URL(filePath: path), schema: Schema(parsing: Self.schema))
        let result = try await body(try store.partition(server: server))
        try store.close()
        return result
    }

    /// Pages at the end of a list of 100,000.
    func longList() async throws -> [BenchRow] {
        let count = min(largest, 100_000)
        return try await withOrders(OrderServer(count: .max)) { app in
            let long = try app.pages(Self.orders(100))
            _ = try await long.all(upTo: count)
            let number = Counter()
            let appended = try await Measurement.times(
                rounds: rounds,
                [
                    { try await Measurement.time { keep(try await long.next()) } },
                    {
                        let empty = try app.pages(Self.orders(100, "list-\(number.next())-"))
                        _ = try await empty.status()
                        return try await Measurement.time { keep(try await empty.next()) }
                    },
                ])
            let halves = try app.pages(Self.orders(50))
            let last = try await halves.all(upTo: count).pageCount - 1
            var own = Self.orders(50)
            own.variables["nextToken"] = .string("\(last * 50)")
            let read = try await Measurement.times(
                rounds: rounds,
                [
                    { [own] in
                        keep(own)
                        return try Measurement.time(repeating: 100) { keep(try halves.page(last)) }
                    },
                    { [own] in try Measurement.time(repeating: 100) { keep(try app.read(own)) } },
                ])
            return [
                BenchRow(
                    name: "list-append", what: "a page of 100 for a list of \(count), durable", appended,
                    floorName: "the same for an empty list", reach: .ratio(1.2)),
                BenchRow(
                    name: "list-end", what: "50 objects at the end of that list", read,
                    floorName: "the same 50 by their own page", reach: .ratio(1.2)),
            ]
        }
    }

    /// All of a list of 25,000.
    func wholeList() async throws -> [BenchRow] {
        let count = 25_000
        var server = OrderServer(count: count)
        let bodies = stride(from: 0, to: count, by: 1_000).map { server.body(of: "", from: $0, 1_000) }
        // What the server does is not measured.
        server.prepared = bodies
        var growth: [Int] = []
        // Each is run once more just before, and not timed: the allocator puts in order then what the other has freed.
        let times = try await Measurement.times(
            rounds: min(rounds, 7),
            [
                { [server] in
                    var time = 0.0
                    for _ in 0..<2 {
                        time = try await withOrders(server) { app in
                            Memory.forgetPeak()
                            let before = Memory.current ?? 0
                            let time = try await Measurement.time {
                                keep(try await app.pages(Self.orders(1_000)).all())
                            }
                            if let peak = Memory.peak { growth.append(peak - before) }
                            return time
                        }
                    }
                    return time
                },
                {
                    var time = 0.0
                    for _ in 0..<2 {
                        time = try Measurement.time {
                            for body in bodies { keep(try JSONSerialization.jsonObject(with: Data(body))) }
                        }
                    }
                    return time
                },
            ])
        return [
            BenchRow(
                name: "list-all", what: "all \(count) objects of a list, from a server in this process", times,
                floorName: "JSONSerialization on its pages", reach: .ratio(1)),
            BenchRow(
                name: "list-all-memory", what: "most memory above what there was before", unit: .bytes,
                value: Double(growth.max() ?? 0), reach: .most(64 * 1_048_576)),
        ]
    }
}

private final class Counter: @unchecked Sendable {
    private var value = 0

    func next() -> Int {
        value += 1
        return value
    }
}

/// Sends orders by tokens that say where a page begins. Lists of other filters have other orders.
private struct OrderServer: GraphQLTransport {
    let count: Int
    /// The answers for pages of 1,000 where they are made beforehand.
    var prepared: [[UInt8]] = []

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        guard case .object(let values)? = try? Value(json: request.variables), case .int(let limit)? = values["limit"],
            case .string(let filter)? = values["filter"]
        else { return GraphQLAnswer(body: Array(#"{"data":null}"#.utf8)) }
        let start = values["nextToken"].flatMap { if case .string(let text) = $0 { Int(text) } else { nil } } ?? 0
        if !prepared.isEmpty { return GraphQLAnswer(body: prepared[start / 1_000]) }
        return GraphQLAnswer(body: body(of: filter, from: start, Int(limit)))
    }

    func body(of filter: String, from start: Int, _ limit: Int) -> [UInt8] {
        let end = min(start + limit, count)
        let items = (start..<end).map {
            #"{"__typename":"Order","id":"\#(filter)\#($0)","sku":"sku-\#($0)","price":\#($0 % 97),"owner":"janedoe"}"#
        }
        let next = end < count ? "\"\(end)\"" : "null"
        return Array(
            (#"{"data":{"listOrders":{"__typename":"OrderList","items":["# + items.joined(separator: ",")
                + #"],"nextToken":\#(next)}}}"#).utf8)
    }
}
