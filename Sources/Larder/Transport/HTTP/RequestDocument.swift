/// The shape of an operation on the wire, as "GraphQL over HTTP" has it: a JSON object with `operationName`, `query`,
/// `variables` and `extensions`, or the same names as parameters of a URL.
package struct RequestDocument {
    /// How the document is told.
    package enum Told {
        case text, hash, textAndHash
    }

    /// What is read as an answer.
    package static let accept = "application/graphql-response+json, application/json;q=0.9"

    private let request: GraphQLRequest
    private let told: Told

    package init(_ request: GraphQLRequest, _ told: Told) {
        self.request = request
        self.told = told
    }

    /// Whether the document's hash is one.
    package var hasHash: Bool { Self.isHash(request.documentHash) }

    package var json: [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(request.document.utf8.count + request.variables.count + 256)
        json.append(UInt8(ascii: "{"))
        for part in parts {
            if json.count > 1 { json.append(UInt8(ascii: ",")) }
            appendJSONString(part.name, to: &json)
            json.append(UInt8(ascii: ":"))
            switch part.value {
            case .text(let text): appendJSONString(text, to: &json)
            case .json(let bytes): json += bytes
            }
        }
        json.append(UInt8(ascii: "}"))
        return json
    }

    package var queryString: String {
        parts.map { part in
            switch part.value {
            case .text(let text): "\(part.name)=\(Self.percentEncoded(text.utf8))"
            case .json(let bytes): "\(part.name)=\(Self.percentEncoded(bytes))"
            }
        }.joined(separator: "&")
    }

    private enum Part {
        case text(String)
        case json([UInt8])
    }

    private var parts: [(name: String, value: Part)] {
        var parts: [(name: String, value: Part)] = []
        if let name = request.operationName { parts.append(("operationName", .text(name))) }
        if told != .hash { parts.append(("query", .text(request.document))) }
        if request.variables != Array("{}".utf8), !request.variables.isEmpty {
            parts.append(("variables", .json(request.variables)))
        }
        if told != .text {
            let extensions = #"{"persistedQuery":{"version":1,"sha256Hash":"\#(request.documentHash)"}}"#
            parts.append(("extensions", .json(Array(extensions.utf8))))
        }
        return parts
    }

    private static func isHash(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// Everything but the unreserved characters of RFC 3986, section 2.3, as `%XX`.
    private static func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                text.append(byte)
            default:
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
