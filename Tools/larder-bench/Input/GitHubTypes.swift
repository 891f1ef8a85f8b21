/// The recorded response as a program would declare it.
struct GitHubIssues: Decodable {
    struct Repository: Decodable {
        var name: String
        var issues: Nodes<Issue>
    }

    struct Nodes<Node: Decodable>: Decodable {
        var nodes: [Node]
    }

    struct Issue: Decodable {
        var title: String
        var author: Author?
        var body: String
        var comments: Nodes<Comment>
    }

    struct Comment: Decodable {
        var body: String
        var author: Author?
    }

    struct Author: Decodable {
        var login: String
        var id: String?
        var name: String?
    }

    var repository: Repository?
}

/// Any response, for inputs of which the program knows no types.
enum AnyTree: Decodable {
    case null
    case boolean(Bool)
    case number(Double)
    case text(String)
    case list([AnyTree])
    case object([String: AnyTree])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let object = try? container.decode([String: AnyTree].self) {
            self = .object(object)
        } else if let list = try? container.decode([AnyTree].self) {
            self = .list(list)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else {
            self = .number(try container.decode(Double.self))
        }
    }
}
