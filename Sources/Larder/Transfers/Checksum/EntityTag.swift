import Crypto

/// What an ETag tells of the bytes it names, where the storage makes it as S3 does: their MD5, or the MD5 of their
/// parts' MD5s and the number of parts. ETags of encrypted objects look alike and tell nothing.
package struct EntityTag: Sendable, Hashable {
    /// Nil where it has not the form of one.
    package let md5: [UInt8]?
    /// Whether equal tags do not mean equal bytes (RFC 9110, section 8.8.1): they cannot bind ranges to one object.
    package let isWeak: Bool
    /// How many parts the object was made of; nil where it was sent in one piece.
    package let parts: Int?

    /// The MD5 of the bytes; nil where it is something else, as of an object that was made of parts.
    package var wholeMD5: [UInt8]? { parts == nil ? md5 : nil }

    /// - Parameter text: With or without quotation marks.
    package init(_ text: String) {
        isWeak = text.hasPrefix("W/")
        let text = text.trimmingPrefix("\"")
        let bare = text.hasSuffix("\"") ? text.dropLast() : text
        let pieces = bare.split(separator: "-", omittingEmptySubsequences: false)
        let (md5, parts) = (pieces.first.flatMap(Self.bytes), pieces.count == 2 ? Int(pieces[1]) : nil)
        // Whatever else follows an MD5, it is the tag of something else.
        self.md5 = pieces.count == 1 || parts != nil ? md5 : nil
        self.parts = parts
    }

    /// That of an object which is made of parts; nil where one of them is no MD5.
    package init?(ofParts parts: [EntityTag]) {
        var digest = Insecure.MD5()
        for part in parts {
            guard let md5 = part.wholeMD5 else { return nil }
            digest.update(data: md5)
        }
        guard !parts.isEmpty else { return nil }
        (md5, isWeak) = (Array(digest.finalize()), false)
        self.parts = parts.count
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue.map(UInt8.init) }
        guard digits.count == 32 else { return nil }
        let bytes = stride(from: 0, to: 32, by: 2).compactMap { index -> UInt8? in
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            return high << 4 | low
        }
        return bytes.count == 16 ? bytes : nil
    }
}
