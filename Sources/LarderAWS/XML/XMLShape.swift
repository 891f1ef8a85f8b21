/// What is checked before a document is parsed: the parser cannot be stopped within a tag, and its time grows with the
/// square of how many attributes the tag has.
enum XMLShape {
    /// In bytes. S3's longest tags have about 100.
    private static let longestTag = 1 << 10
    /// A list of 10,000 parts, S3's limit, has fewer.
    private static let maximumTags = 400_000

    /// Whether a document is UTF-8, declares neither a type nor entities, and has neither long tags nor too many.
    static func isPlain(_ document: ArraySlice<UInt8>) -> Bool {
        var rest = document.starts(with: [0xEF, 0xBB, 0xBF]) ? document.dropFirst(3) : document
        // A byte of 0 is in all that is written in UTF-16 or UTF-32.
        guard rest.first == UInt8(ascii: "<"), !rest.contains(0) else { return false }
        var count = 0
        while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[start...]
            count += 1
            guard count <= maximumTags else { return false }
            let end: ArraySlice<UInt8>.Index?
            let second = rest.dropFirst().first
            if second != UInt8(ascii: "!"), second != UInt8(ascii: "?") {
                end = endOfTag(rest.prefix(longestTag))
            } else if rest.starts(with: Array("<!--".utf8)) {
                end = rest.dropFirst(4).firstRange(of: Array("-->".utf8))?.upperBound
            } else if rest.starts(with: Array("<![CDATA[".utf8)) {
                end = rest.firstRange(of: Array("]]>".utf8))?.upperBound
            } else if second == UInt8(ascii: "?") {
                end = rest.prefix(longestTag).firstRange(of: Array("?>".utf8))?.upperBound
                if let end, !isUTF8(rest[..<end]) { return false }
            } else {
                return false
            }
            guard let end else { return false }
            rest = rest[end...]
        }
        return true
    }

    /// Where a tag ends; nil where it does not. What is within quotation marks does not end it.
    private static func endOfTag(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8>.Index? {
        var quote: UInt8?
        for (index, byte) in zip(text.indices, text) {
            if byte == quote {
                quote = nil
            } else if quote == nil, byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if quote == nil, byte == UInt8(ascii: ">") {
                return index + 1
            }
        }
        return nil
    }

    /// Whether a declaration names no other encoding.
    private static func isUTF8(_ declaration: ArraySlice<UInt8>) -> Bool {
        let text = String(decoding: declaration, as: UTF8.self).lowercased()
        return !text.contains("encoding") || text.contains("utf-8")
    }
}
