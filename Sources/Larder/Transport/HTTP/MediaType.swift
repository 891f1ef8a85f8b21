/// What a `Content-Type` says, as far as it decides whether the body can be a GraphQL response.
struct MediaType {
    let name: String
    let charset: String?

    init(_ field: String) {
        let parts = field.split(separator: ";", omittingEmptySubsequences: false).map { $0.trimmed.lowercased() }
        name = parts.first ?? ""
        charset = parts.dropFirst().lazy
            .compactMap { part in part.hasPrefix("charset=") ? part.dropFirst("charset=".count) : nil }
            .first.map { String($0.filter { $0 != "\"" }) }
    }

    /// The two types of "GraphQL over HTTP", and the one that came before them. JSON is UTF-8 (RFC 8259).
    var canHoldResponse: Bool {
        ["application/graphql-response+json", "application/json", "application/graphql+json"].contains(name)
            && (charset == nil || charset == "utf-8" || charset == "utf8" || charset == "us-ascii")
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
