import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

extension XMLNode {
    /// The root of a document; nil where the bytes are not one, or nest deeper or have more elements than any answer
    /// does.
    ///
    /// Whitespace may come first: S3 sends some to keep a connection open while it works. Entities other than XML's own
    /// are not looked up.
    init?(_ bytes: [UInt8]) {
        let document = bytes.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        guard !document.isEmpty, XMLShape.isPlain(document) else { return nil }
        let reader = Reader()
        let parser = XMLParser(data: Data(document))
        parser.shouldResolveExternalEntities = false
        parser.shouldProcessNamespaces = false
        parser.delegate = reader
        guard parser.parse(), let root = reader.root else { return nil }
        self = root
    }

    private final class Reader: NSObject, XMLParserDelegate {
        /// What was opened and not closed, the outermost first.
        private var open: [XMLNode] = []
        private(set) var root: XMLNode?

        private static let depth = 32

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            guard open.count < Self.depth else { return parser.abortParsing() }
            open.append(XMLNode(name: name.split(separator: ":").last.map(String.init) ?? name))
        }

        func parser(_ parser: XMLParser, foundCharacters text: String) {
            guard !open.isEmpty else { return }
            open[open.count - 1].text += text
        }

        func parser(_ parser: XMLParser, foundCDATA block: Data) {
            guard !open.isEmpty else { return }
            open[open.count - 1].text += String(decoding: block, as: UTF8.self)
        }

        func parser(
            _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
        ) {
            guard let closed = open.popLast() else { return parser.abortParsing() }
            if open.isEmpty { root = closed } else { open[open.count - 1].children.append(closed) }
        }
    }
}
