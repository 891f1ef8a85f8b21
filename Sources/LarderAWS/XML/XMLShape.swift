/// What is checked before a document is parsed: the parser cannot be stopped within a tag or a text, and its time grows
/// with the square of how many attributes the tag has, and of the text's length.
enum XMLShape {
    /// In bytes. S3's longest tags have about 100.
    private static let longestTag = 1 << 10
    /// In bytes: a text between tags, a comment, a section. S3's longest tells in hexadecimal digits what was signed.
    private static let longestText = 1 << 17
    /// A list of 10,000 parts, S3's limit, has fewer.
    private static let maximumTags = 400_000

    /// Whether a document is UTF-8, declares neither a type nor entities, and has neither long tags nor too many.
    static func isPlain(_ document: ArraySlice<UInt8>) -> Bool {
        var rest = document.starts(with: [0xEF, 0xBB, 0xBF]) ? document.dropFirst(3) : document
        // A byte of 0 is in all that is written in UTF-16 or UTF-32.
        guard rest.first == UInt8(ascii: "<"), !rest.contains(0) else { return false }
        var count = 0
        while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
            guard start - rest.startIndex <= longestText else { return false }
            rest = rest[start...]
            count += 1
            guard count <= maximumTags else { return false }
            let end: ArraySlice<UInt8>.Index?
            let second = rest.dropFirst().first
            if second != UInt8(ascii: "!"), second != UInt8(ascii: "?") {
                end = endOfTag(rest.prefix(longestTag))
            } else if rest.starts(with: Array("<!--".utf8)) {
                end = self.end(of: "-->", in: rest.dropFirst(4))
            } else if rest.starts(with: Array("<![CDATA[".utf8)) {
                end = self.end(of: "]]>", in: rest)
            } else if second == UInt8(ascii: "?") {
                end = self.end(of: "?>", in: rest.prefix(longestTag))
                if let end, !isUTF8(rest[..<end]) { return false }
            } else {
                return false
            }
            guard let end else { return false }
            rest = rest[end...]
        }
        return rest.count <= longestText
    }

    /// Where a mark ends, whose last character is ">"; nil where it is not there, or too far away. The time is linear,
    /// whatever the text repeats.
    private static func end(of mark: String, in text: ArraySlice<UInt8>) -> ArraySlice<UInt8>.Index? {
        var rest = text.prefix(longestText)
        while let last = rest.firstIndex(of: UInt8(ascii: ">")) {
            if text[...last].suffix(mark.utf8.count).elementsEqual(mark.utf8) { return last + 1 }
            rest = rest[(last + 1)...]
        }
        return nil
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
