/// How the pages of one list of the query root follow each other, in the terms of the cache: by field keys, without a
/// schema or an operation.
package struct PageChain: Sendable, Hashable, Codable {
    /// One direction.
    package struct Way: Sendable, Hashable, Codable {
        /// The text of a page's field key up to the JSON of where the page begins, and after it.
        package var before: String
        package var after: String
        /// Whether that JSON is a text even where the page says a number.
        package var isText: Bool
        /// The field of the page whose object says what follows; nil where the page says it itself.
        package var info: String?
        /// The field that says whether another page follows; nil where the position alone says it.
        package var has: String?
        /// The field that says where that page begins.
        package var position: String
    }

    /// The field key of the page that the operation itself asks for.
    package var first: String
    /// The field of a page that has its elements.
    package var list: String
    package var next: Way?
    package var previous: Way?
}

extension PageChain.Way {
    /// The field key of the page that begins at a text.
    package func key(at position: String) -> String {
        var json: [UInt8] = []
        appendJSONString(position, to: &json)
        return before + String(decoding: json, as: UTF8.self) + after
    }

    /// The field key of the page that begins at a number.
    package func key(at position: Int64) -> String {
        isText ? key(at: "\(position)") : "\(before)\(position)\(after)"
    }
}
