extension BenchInput {
    /// A response of the benchmark's own, of about the size and form of the recorded one: issues with comments by
    /// authors who come again and again.
    static func generated() throws -> BenchInput {
        try BenchInput(
            source: "generated: 100 issues with 12 comments each", schema: schema, document: document, name: nil,
            variables: nil, body: Array(#"{"data":{"issues":[\#((0..<100).map(issue).joined(separator: ","))]}}"#.utf8))
    }

    private static let schema = """
        type Query { issues: [Issue!]! }
        type Issue { title: String! body: String! author: Author comments: [Comment!]! }
        type Comment { body: String! author: Author }
        type Author { id: ID! login: String! name: String }
        """

    private static let document = """
        query Issues { issues { title body author { ...Who } comments { body author { ...Who } } } }
        fragment Who on Author { id login name }
        """

    private static func issue(_ number: Int) -> String {
        let comments = (0..<12).map { comment in
            #"{"__typename":"Comment","body":"\#(prose(number * 31 + comment))","#
                + #""author":\#(author(number + comment * 7))}"#
        }
        return #"{"__typename":"Issue","title":"Issue \#(number) is about something","body":"\#(prose(number))","#
            + #""author":\#(author(number)),"comments":[\#(comments.joined(separator: ","))]}"#
    }

    private static func author(_ number: Int) -> String {
        let id = number % 83
        return #"{"__typename":"Author","id":"author-\#(id)","login":"login\#(id)","name":"Author Number \#(id)"}"#
    }

    private static func prose(_ seed: Int) -> String {
        let words = [
            "salt", "pepper", "a line\\nbreak", "\\\"quoted\\\"", "butter", "slowly", "stirred", "until", "golden",
        ]
        return (0..<(8 + seed % 60)).map { words[(seed &* 17 &+ $0 &* 7) % words.count] }.joined(separator: " ")
    }
}
