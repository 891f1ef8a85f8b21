/// Headers of one request, gathered from several sources; all of them are ones that HTTP allows.
package struct RequestHeaders: Sendable {
    package private(set) var fields: [GraphQLRequest.Header] = []

    package init() {}

    /// Adds the headers of a later source. They replace those of the same name from earlier ones; a name that one
    /// source gives twice is sent twice.
    package mutating func replace(with later: [GraphQLRequest.Header]) throws(TransportError) {
        for header in later { try Self.validate(header) }
        let names = Set(later.map { $0.name.lowercased() })
        fields.removeAll { names.contains($0.name.lowercased()) }
        fields += later
    }

    /// RFC 9110, sections 5.1 and 5.5: a name is a token; a value holds no control characters except the tab.
    private static func validate(_ header: GraphQLRequest.Header) throws(TransportError) {
        let name = header.name
        guard !name.isEmpty, name.utf8.allSatisfy(isTokenCharacter) else {
            throw TransportError(.unusableRequest, "\"\(printable(name))\" is not a name that an HTTP header can have.")
        }
        // The value is kept out of the message: it may be a secret.
        guard header.value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
            throw TransportError(
                .unusableRequest, "The value of the header \(name) contains a line break or another control character."
            )
        }
        guard !["content-length", "transfer-encoding"].contains(name.lowercased()) else {
            throw TransportError(.unusableRequest, "The header \(name) frames the message and is set by the client.")
        }
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.prefix(80).map { $0.value < 0x20 ? "\u{FFFD}" : $0 }))
    }
}
