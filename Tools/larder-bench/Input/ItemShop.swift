import Foundation
import Larder
import LarderGraphQL
import LarderRecords

/// Records of ten fields, as many as one likes, under keys like `Item:17`.
struct ItemShop {
    static let schemaText = """
        type Query { items(page: Int!): [Item!]! item(id: ID!): Item }
        type Mutation { rename(id: ID!, title: String!): Item! }
        type Item {
          id: ID! title: String! summary: String! kind: String! price: Float! stock: Int! weight: Float!
          available: Boolean! updated: String! rating: Int
        }
        """
    static let fields = "id title summary kind price stock weight available updated rating"
    static let fragmentText = "fragment All on Item { \(fields) }"
    static let pageSize = 10_000

    private let page: CompiledOperation
    private let change: CompiledOperation
    /// All ten fields of one item.
    let fragment: BoundOperation

    init() throws {
        let schema = try SchemaIndex(parsing: Self.schemaText)
        page = try CompiledOperation(
            operation: nil, in: Document(parsing: "query P($p: Int!) { items(page: $p) { \(Self.fields) } }"), schema)
        change = try CompiledOperation(
            operation: nil, in: Document(parsing: "query C($id: ID!) { item(id: $id) { id title } }"), schema)
        fragment = try CompiledOperation(fragment: nil, in: Document(parsing: Self.fragmentText), schema).bound()
    }

    static let newTitle = "A soup of lentils and a good deal of cumin"

    /// A mutation that gives an item another title.
    ///
    /// - Parameter isShown: Whether it says what is expected.
    static func rename(_ number: Int, in app: Partition, isShown: Bool) async throws {
        let (id, title) = (Value.string("\(number)"), Value.string(newTitle))
        let operation = GraphQLOperation(
            "mutation Rename($id: ID!, $title: String!) { rename(id: $id, title: $title) { id title } }",
            name: "Rename", variables: ["id": id, "title": title])
        var queued = MutationOptions()
        if isShown { queued.optimisticResponse = ["rename": ["__typename": "Item", "id": id, "title": title]] }
        try await app.enqueue(operation, options: queued)
    }

    static func key(_ number: Int) -> String { "Item:\(number)" }

    static func item(_ number: Int) -> String {
        #"{"__typename":"Item","id":"\#(number)","title":"Item number \#(number)","#
            + #""summary":"What is to be said about item \#(number) in one sentence of some length","#
            + #""kind":"kind-\#(number % 17)","price":\#(number % 100).25,"#
            + #""stock":\#(number % 1000),"weight":1.5,"available":\#(number % 3 != 0),"#
            + #""updated":"2026-11-21T09:51:46Z","rating":\#(number % 5 == 0 ? "null" : "4")}"#
    }

    /// Puts items into the cache, in commits of `pageSize`.
    func fill(_ cache: RecordCache, _ numbers: Range<Int>) async throws {
        var start = numbers.lowerBound
        while start < numbers.upperBound {
            let end = min(start + Self.pageSize, numbers.upperBound)
            try await fill(cache, page: start, Array(start..<end))
            start = end
        }
    }

    /// Puts a page of these items into the cache.
    func fill(_ cache: RecordCache, page: Int, _ numbers: [Int]) async throws {
        let operation = try reading(page: page)
        let items = numbers.map(Self.item).joined(separator: ",")
        let body = Array(#"{"data":{"items":[\#(items)]}}"#.utf8)
        _ = try await cache.write(try ParsedResponse.parse(body, along: operation.layout), of: operation)
    }

    /// All items of the page that begins with an item.
    func reading(page: Int) throws -> BoundOperation { try self.page.bound(["p": .int(Int64(page))]) }

    /// The operation and a response to it that give an item another title.
    func changing(_ number: Int) throws -> BoundOperation { try change.bound(["id": .string("\(number)")]) }

    func changed(_ number: Int, title: String) -> [UInt8] {
        Array(#"{"data":{"item":{"__typename":"Item","id":"\#(number)","title":"\#(title)"}}}"#.utf8)
    }
}
