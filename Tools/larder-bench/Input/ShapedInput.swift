extension BenchInput {
    /// Responses of several shapes, each of a few hundred kilobytes to a megabyte, by their names.
    static func shapes() throws -> [(name: String, input: BenchInput)] {
        [
            ("keyed", try shaped("10,000 objects with identity", list(of: 10_000, item: keyed))),
            ("unkeyed", try shaped("10,000 objects without identity", list(of: 10_000, item: unkeyed))),
            ("deep", try shaped("40 trees of 14 levels", deep())),
            ("strings", try shaped("3,000 objects of 12 short texts", list(of: 3_000, item: strings))),
            ("floats", try shaped("2,000 lists of 20 numbers with 17 digits", list(of: 2_000, item: floats))),
            ("cjk", try shaped("1,500 objects of Chinese and Japanese text", list(of: 1_500, item: cjk))),
            ("issues", try generated()),
        ]
    }

    private struct Shape {
        var fields: String
        var data: String
    }

    private static func shaped(_ source: String, _ shape: Shape) throws -> BenchInput {
        try BenchInput(
            source: "generated: \(source)", schema: schemaText, document: "{ \(shape.fields) }", name: nil,
            variables: nil, body: Array(#"{"data":\#(shape.data)}"#.utf8))
    }

    private static let schemaText = """
        type Query {
          keyed: [Keyed!]! unkeyed: [Unkeyed!]! strings: [Strings!]! floats: [Floats!]! cjk: [Text!]! trees: [Tree!]!
        }
        type Keyed { id: ID! name: String! count: Int! }
        type Unkeyed { name: String! count: Int! }
        type Strings {
          a: String! b: String! c: String! d: String! e: String! f: String!
          g: String! h: String! i: String! j: String! k: String! l: String!
        }
        type Floats { id: ID! values: [Float!]! }
        type Text { id: ID! title: String! body: String! }
        type Tree { label: String! left: Tree right: Tree }
        """

    private struct Item: Sendable {
        var field: String
        var selection: String
        var json: @Sendable (Int) -> String
    }

    private static func list(of count: Int, item: Item) -> Shape {
        Shape(
            fields: "\(item.field) { \(item.selection) }",
            data: #"{"\#(item.field)":[\#((0..<count).map(item.json).joined(separator: ","))]}"#)
    }

    private static let keyed = Item(field: "keyed", selection: "id name count") { number in
        #"{"__typename":"Keyed","id":"\#(number)","name":"Name \#(number)","count":\#(number % 997)}"#
    }

    private static let unkeyed = Item(field: "unkeyed", selection: "name count") { number in
        #"{"__typename":"Unkeyed","name":"Name \#(number)","count":\#(number % 997)}"#
    }

    private static let strings = Item(field: "strings", selection: "a b c d e f g h i j k l") { number in
        let fields = "abcdefghijkl".enumerated().map { #""\#($1)":"w\#((number &* 31 &+ $0 &* 7) % 4_001)""# }
        return #"{"__typename":"Strings",\#(fields.joined(separator: ","))}"#
    }

    private static let floats = Item(field: "floats", selection: "id values") { number in
        // Sevenths of odd numbers take all 17 digits.
        let values = (0..<20).map { "\(Double((number &* 20 &+ $0) | 1) / 7 * 1.000_000_000_3)" }
        return #"{"__typename":"Floats","id":"\#(number)","values":[\#(values.joined(separator: ","))]}"#
    }

    private static let cjk = Item(field: "cjk", selection: "id title body") { number in
        let words = ["料理", "野菜を洗う", "弱火で煮込む", "番茶", "切ります", "蒸汽", "豆腐", "少々の塩", "出汁", "完成"]
        let text = (0..<30).map { words[(number &* 17 &+ $0 &* 7) % words.count] }.joined()
        return #"{"__typename":"Text","id":"\#(number)","title":"献立\#(number)","body":"\#(text)"}"#
    }

    private static func deep() -> Shape {
        let levels = 14
        let selection = (0..<levels).reduce("label") { inner, _ in "label left { \(inner) } right { label }" }
        func tree(_ number: Int, _ level: Int) -> String {
            let label = #""__typename":"Tree","label":"node \#(number) at \#(level)""#
            guard level < levels else { return "{\(label)}" }
            let right = #"{"__typename":"Tree","label":"leaf \#(number) at \#(level)"}"#
            return #"{\#(label),"left":\#(tree(number, level + 1)),"right":\#(right)}"#
        }
        let trees = (0..<40).map { tree($0, 0) }.joined(separator: ",")
        return Shape(fields: "trees { \(selection) }", data: #"{"trees":[\#(trees)]}"#)
    }
}
