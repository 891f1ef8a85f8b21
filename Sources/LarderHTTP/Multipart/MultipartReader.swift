import Foundation
import Larder

/// Reads JSON objects out of the parts of a `multipart/mixed` body, as its bytes come.
///
/// A part is handed over with its last brace: the boundary behind it may come with the next part alone, long after.
struct MultipartReader {
    private enum Place {
        /// In a line that may be a boundary.
        case line
        case headers
        case body
        case end
    }

    /// The longest line outside of a part's content.
    private static let longestLine = 8_192

    private let delimiter: [UInt8]
    private let limit: Int
    private var place = Place.line
    private var line: [UInt8] = []
    private var body: [UInt8] = []
    private var depth = 0
    private var isInString = false
    private var isEscaped = false

    /// - Parameters:
    ///   - boundary: As the content type says it.
    ///   - limit: The longest content of a part, in bytes.
    init(boundary: String, limit: Int) {
        delimiter = Array("--\(boundary)".utf8)
        self.limit = limit
    }

    /// Whether the closing boundary has come.
    var isAtEnd: Bool { place == .end }

    /// The parts that are whole with these bytes.
    ///
    /// - Throws: `.unusableAnswer` for what is no part, or longer than allowed.
    mutating func parts(in bytes: some Sequence<UInt8>) throws(TransportError) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        for byte in bytes {
            switch place {
            case .end: return parts
            case .body: if let part = try append(byte) { parts.append(part) }
            case .line, .headers:
                guard byte == UInt8(ascii: "\n") else {
                    guard line.count < Self.longestLine else { throw Self.fault("a line of more than 8 KiB") }
                    line.append(byte)
                    continue
                }
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                endLine()
            }
        }
        // The last boundary needs no line behind it.
        if place == .line, line == delimiter + Array("--".utf8) { place = .end }
        return parts
    }

    private mutating func endLine() {
        defer { line = [] }
        if line == delimiter + Array("--".utf8) {
            // Also where a server has begun a part that does not come.
            place = .end
        } else if place == .headers {
            if line.isEmpty { place = .body }
        } else if line == delimiter {
            place = .headers
        }
    }

    private mutating func append(_ byte: UInt8) throws(TransportError) -> [UInt8]? {
        if body.isEmpty {
            guard byte != UInt8(ascii: " "), !(9...13).contains(byte) else { return nil }
            guard byte == UInt8(ascii: "{") else { throw Self.fault("a part that is no JSON object") }
        }
        guard body.count < limit else { throw Self.fault("a longer part than is allowed") }
        body.append(byte)
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString = false
            }
            return nil
        }
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "}"):
            depth -= 1
            guard depth == 0 else { break }
            defer { (body, place) = ([], .line) }
            return body
        default: break
        }
        return nil
    }

    private static func fault(_ what: String) -> TransportError {
        TransportError(.unusableAnswer, "The server sent \(what) in its multipart answer.")
    }

    /// The boundary that a content type names; nil where it is not `multipart/mixed`.
    static func boundary(of contentType: String) -> String? {
        var parameters = contentType.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        guard !parameters.isEmpty, parameters.removeFirst().lowercased() == "multipart/mixed" else { return nil }
        for parameter in parameters {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "boundary" else { continue }
            let value = parts[1].trimmingCharacters(in: CharacterSet(charactersIn: "\""))
            return value.isEmpty ? nil : value
        }
        // What the protocol names where the server names none.
        return "-"
    }
}
