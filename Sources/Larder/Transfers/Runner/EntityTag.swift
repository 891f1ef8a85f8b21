internal import Crypto

/// What an ETag tells of the bytes it names, where the storage makes it as S3 does: their MD5, or the MD5 of their
/// parts' MD5s and the number of parts. Those of encrypted objects look alike and tell nothing.
struct EntityTag: Sendable, Hashable {
    /// Nil where it has not the form of one.
    let md5: [UInt8]?
    /// How many parts the object was made of; nil where it was sent in one piece.
    let parts: Int?

    /// - Parameter text: With or without quotation marks.
    init(_ text: String) {
        let text = text.trimmingPrefix("\"")
        let bare = text.hasSuffix("\"") ? text.dropLast() : text
        let pieces = bare.split(separator: "-", omittingEmptySubsequences: false)
        md5 = pieces.first.flatMap { Self.bytes($0) }
        parts = pieces.count == 2 ? Int(pieces[1]) : nil
    }

    /// That of an object which is made of parts; nil where one of them is no MD5.
    static func md5(ofParts parts: [EntityTag]) -> [UInt8]? {
        var digest = Insecure.MD5()
        for part in parts {
            guard let md5 = part.md5, part.parts == nil else { return nil }
            digest.update(data: md5)
        }
        return parts.isEmpty ? nil : Array(digest.finalize())
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count == 32 else { return nil }
        let bytes = stride(from: 0, to: 32, by: 2).compactMap { index in
            UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
        }
        return bytes.count == 16 ? bytes : nil
    }
}
