import Foundation
import LarderGraphQL

/// Finds temporary ids in JSON and in keys, and puts others in their places.
///
/// One is found where a string of the JSON is the token, or is a key of the cache that has it for an id: `Type:token`,
/// `Type:{"field":"token"}`, and a field's arguments, `field({"argument":"token"})`. A token within other text is text.
/// The rest stays byte for byte.
enum TemporaryIDText {
    typealias Replacement = (TemporaryID) throws -> String?

    /// Keys within keys end here; each level doubles its backslashes.
    private static let maximumDepth = 4

    /// The JSON with other texts for the ids for which `replacement` has any.
    static func replace(inJSON json: [UInt8], depth: Int = 0, _ replacement: Replacement) rethrows -> [UInt8] {
        guard mayHold(json[...]) else { return json }
        var result: [UInt8] = []
        var (copied, position) = (0, 0)
        while let start = json[position...].firstIndex(of: UInt8(ascii: "\"")) {
            guard let end = endOfString(json, from: start + 1) else { break }
            position = end
            guard mayHold(json[start..<end]), let text = content(of: json[start..<end]) else { continue }
            let replaced = try replace(inText: text, depth: depth, replacement)
            guard !replaced.utf8.elementsEqual(text.utf8) else { continue }
            result += json[copied..<start]
            appendJSONString(replaced, to: &result)
            copied = end
        }
        return copied == 0 ? json : result + json[copied...]
    }

    /// The same for a text by itself, such as a lane's name.
    static func replace(inText text: String, depth: Int = 0, _ replacement: Replacement) rethrows -> String {
        if let id = TemporaryID(text) { return try replacement(id) ?? text }
        guard depth < maximumDepth, let end = text.utf8.firstIndex(where: { !isNameByte($0) }), end != text.startIndex
        else { return text }
        let (name, rest) = (text[..<end], text[text.utf8.index(after: end)...])
        switch text.utf8[end] {
        case UInt8(ascii: ":"):
            if let id = TemporaryID(String(rest)) { return try replacement(id).map { name + ":" + $0 } ?? text }
            guard rest.utf8.first == UInt8(ascii: "{") else { return text }
            let inner = try replace(inJSON: Array(rest.utf8), depth: depth + 1, replacement)
            return name + ":" + String(decoding: inner, as: UTF8.self)
        case UInt8(ascii: "("):
            guard rest.utf8.first == UInt8(ascii: "{") else { return text }
            let inner = try replace(inJSON: Array(rest.utf8), depth: depth + 1, replacement)
            return name + "(" + String(decoding: inner, as: UTF8.self)
        default: return text
        }
    }

    /// Whether an id may be there; never false where one is. A token has nothing that JSON must escape, but may.
    fileprivate static func mayHold(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.count >= TemporaryID.length else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            let (first, backslash) = (TemporaryID.prefix.utf8.first, UInt8(ascii: "\\"))
            return bytes.indices.contains { index in
                switch bytes[index] {
                case first: bytes[index...].starts(with: TemporaryID.prefix.utf8)
                case backslash: index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "u")
                default: false
                }
            }
        }
    }

    /// The index past the quotation mark that ends a string.
    private static func endOfString(_ json: [UInt8], from start: Int) -> Int? {
        var index = start
        while index < json.count {
            switch json[index] {
            case UInt8(ascii: "\""): return index + 1
            case UInt8(ascii: "\\"): index += 2
            default: index += 1
            }
        }
        return nil
    }

    /// What a JSON string says, quotation marks included in `string`.
    private static func content(of string: ArraySlice<UInt8>) -> String? {
        guard string.contains(UInt8(ascii: "\\")) else {
            return String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
        }
        return try? JSONDecoder().decode(String.self, from: Data(string))
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension TemporaryID {
    /// Whether one may stand in a document; never false where one does.
    package static func mayStand(inDocument document: String) -> Bool {
        TemporaryIDText.mayHold(Array(document.utf8)[...])
    }

    /// The one that a string of a document is, or holds where a key of the cache has an id; nil for any other text.
    package static func found(in text: String) -> TemporaryID? {
        var found: TemporaryID?
        _ = TemporaryIDText.replace(inText: text) { id in
            found = found ?? id
            return nil
        }
        return found
    }

    /// A text with another for the id that it is, or holds where a key of the cache has an id.
    package static func replaced(in text: String, by replacement: (TemporaryID) -> String?) -> String {
        TemporaryIDText.replace(inText: text, replacement)
    }
}

extension MutationDraft {
    /// Whether temporary ids may be in it, or are reserved by it; never false where that is so.
    var mayHoldTemporaryIDs: Bool {
        !temporaryIDs.isEmpty || TemporaryIDText.mayHold(content.variables[...])
            || TemporaryIDText.mayHold((content.optimisticResponse ?? [])[...])
            || TemporaryIDText.mayHold((content.listEdits ?? [])[...]) || TemporaryIDText.mayHold(Array(lane.utf8)[...])
    }
}
