import LarderGraphQL

/// What a cache knows of a mutation: that it holds its answer, or that there will be none.
///
/// | bytes | | |
/// | --- | --- | --- |
/// | 0-3 | checksum | of the rest and of the stored key |
/// | 4 | kind | `Kind` |
/// | 5-12 | time | milliseconds since 1970, little-endian |
/// | 13- | key | in full where the stored key is shortened, otherwise nothing |
///
/// Safe: the caller lends bytes and keys for the length of a call, which copies what it keeps, and reads a value only
/// once it has found it to be long enough.
package struct AppliedEntry: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        /// The cache holds the answer.
        case applied = 1
        /// The mutation was rejected, or its answer is not stored.
        case rejected = 2
    }

    package let key: String
    package let kind: Kind
    /// When it became known, in milliseconds since 1970.
    package let time: Int64

    private static let header = 9

    init(key: String, kind: Kind, time: Int64) {
        self.key = key
        self.kind = kind
        self.time = time
    }

    /// The form in the table `applied`.
    func encoded(under key: UnsafeRawBufferPointer) -> [UInt8] {
        var content = [kind.rawValue]
        appendLittleEndian(UInt64(bitPattern: time), to: &content)
        if self.key.utf8.count > StoredKey.maximumSize { content.append(contentsOf: self.key.utf8) }
        return unsafe SealedText.encoded(content, seed: Self.seed(key))
    }

    /// Nil where the bytes are not what was stored under the key.
    init?(_ bytes: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer) {
        guard unsafe SealedText.isSound(bytes, seed: Self.seed(key)), let content = unsafe SealedText.text(bytes),
            content.count >= Self.header, let kind = unsafe Kind(rawValue: content[0])
        else { return nil }
        self.kind = kind
        time = unsafe Int64(bitPattern: UInt64(littleEndian: content.loadUnaligned(fromByteOffset: 1, as: UInt64.self)))
        let text = unsafe content.count > Self.header ? UnsafeRawBufferPointer(rebasing: content[Self.header...]) : key
        self.key = unsafe String(decoding: text, as: UTF8.self)
    }

    private static func seed(_ key: UnsafeRawBufferPointer) -> UInt64 { unsafe UInt64(checksum(key, seed: 0)) }
}

/// The idempotency key of a mutation: what is the same whenever the same mutation is sent, and for no other.
package struct AppliedKey: Sendable, Hashable, CustomStringConvertible {
    /// Keys are compared by their bytes.
    private let exact: ExactText

    package var text: String { exact.text }
    package var description: String { text }

    /// Nil for an empty text, which is no key.
    package init?(_ text: String) {
        guard !text.isEmpty else { return nil }
        exact = ExactText(text)
    }
}

/// What a server answered to a mutation, to be stored once.
package struct MutationAnswer: Sendable {
    /// The mutation's. Where the cache knows it already, nothing is stored.
    package let key: AppliedKey
    package let parsed: ParsedResponse
    package let operation: BoundOperation
    /// What becomes of lists, after the answer is stored.
    package let edits: [ListEdit]

    package init(_ parsed: ParsedResponse, of operation: BoundOperation, key: AppliedKey, edits: [ListEdit]) {
        self.key = key
        self.parsed = parsed
        self.operation = operation
        self.edits = edits
    }
}
