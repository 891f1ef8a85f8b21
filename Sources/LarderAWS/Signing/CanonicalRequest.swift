/// A request in the one form that both sides sign.
package struct CanonicalRequest: Sendable {
    package var method: String
    /// Encoded, from the host's `/` on.
    package var path: String
    /// Neither encoded nor in order.
    package var query: [(name: String, value: String)]
    /// All that are to be signed, `host` among them.
    package var headers: [(name: String, value: String)]
    package var payloadHash: PayloadHash

    package init(
        method: String, path: String, query: [(name: String, value: String)],
        headers: [(name: String, value: String)], payloadHash: PayloadHash
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.payloadHash = payloadHash
    }

    /// The text that is hashed.
    package var text: String {
        let lines = canonicalHeaders.map { "\($0.name):\($0.value)\n" }.joined()
        return [method, path, Self.queryText(query), lines, signedHeaders, payloadHash.headerValue]
            .joined(separator: "\n")
    }

    /// The names of the headers that are signed: `host;x-amz-date`.
    package var signedHeaders: String { canonicalHeaders.map(\.name).joined(separator: ";") }

    /// Encoded, in the order of the encoded names and values.
    package static func queryText(_ query: [(name: String, value: String)]) -> String {
        query.map { (name: URIEncoding.component($0.name), value: URIEncoding.component($0.value)) }
            .sorted { ($0.name, $0.value) < ($1.name, $1.value) }
            .map { "\($0.name)=\($0.value)" }
            .joined(separator: "&")
    }

    /// Names in lower case, in order; those of the same name in one, in the order in which they were given.
    private var canonicalHeaders: [(name: String, value: String)] {
        var values: [String: [String]] = [:]
        for header in headers { values[header.name.lowercased(), default: []].append(Self.trimmed(header.value)) }
        return values.sorted { $0.key < $1.key }.map { ($0.key, $0.value.joined(separator: ",")) }
    }

    /// Without spaces at the ends, and with one where there are several.
    private static func trimmed(_ value: String) -> String {
        value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
    }
}
