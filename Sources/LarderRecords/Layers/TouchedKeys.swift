package import LarderGraphQL

/// The cache keys of all records that an optimistic layer reads or writes, as numbers: what tells, before the layer is
/// looked into, whether it can have to do with what is read.
///
/// A key's number is `wideChecksum` of its bytes. Keys of the same number make layers be laid that need not be, and do
/// no other harm. Parts are touched with the entity that holds them.
///
/// The stored form, which is of no use to another schema, by which the same text may have other keys: a byte for the
/// version, a byte for the kind (1 whole, 0 not), the schema's number, and the numbers of the keys, ascending; all
/// numbers are eight bytes, little-endian.
///
/// Safe: bytes are read within the closures that lend them; the stored form is found to have whole words only, before
/// the first is read.
package struct TouchedKeys: Sendable, Hashable {
    /// Layers that touch more are laid always: looking for them would cost as much.
    private static let limit = 128
    /// Of the stored form, and of how keys are made.
    private static let version: UInt8 = 1
    private static let header = 10

    /// Ascending, each once.
    let numbers: [UInt64]
    /// Whether these are all. Otherwise it writes no others, but what it reads depends on what it finds: a place in a
    /// list is found by looking into the list's objects.
    let isWhole: Bool

    /// Nil where it touches too many, or where the object that has a list is found by way of others.
    package init?(_ content: OptimisticLayer.Content) {
        guard content.edits.allSatisfy({ $0.pages?.path == nil }) else { return nil }
        var numbers: Set<UInt64> = []
        unsafe content.forEachKey { unsafe numbers.insert(Self.number(of: $0)) }
        let isWhole = content.edits.allSatisfy { edit in
            switch edit.action {
            case .remove, .insert(_, .start), .insert(_, .end): true
            case .insert(_, .ascending), .insert(_, .descending): false
            }
        }
        guard numbers.count <= Self.limit else { return nil }
        self.numbers = numbers.sorted()
        self.isWhole = isWhole
    }

    @inline(__always)
    static func number(of key: UnsafeRawBufferPointer) -> UInt64 { unsafe wideChecksum(key) }

    static func number(of key: String) -> UInt64 {
        var key = key
        return key.withUTF8 { unsafe number(of: UnsafeRawBufferPointer($0)) }
    }

    /// For tests: keys that meet by chance are hard to find.
    init(numbers: [UInt64], isWhole: Bool) {
        self.numbers = Set(numbers).sorted()
        self.isWhole = isWhole
    }

    // MARK: The stored form

    /// - Parameter schema: `SchemaIndex.number`.
    package func stored(schema: UInt64) -> [UInt8] {
        var bytes: [UInt8] = [Self.version, isWhole ? 1 : 0]
        bytes.reserveCapacity(Self.header + numbers.count * 8)
        appendLittleEndian(schema, to: &bytes)
        for number in numbers { appendLittleEndian(number, to: &bytes) }
        return bytes
    }

    /// Nil where the bytes are none, or are of another schema or version.
    package init?(stored bytes: [UInt8], schema: UInt64) {
        guard bytes.count >= Self.header, (bytes.count - Self.header) % 8 == 0, bytes[0] == Self.version,
            bytes[1] <= 1
        else { return nil }
        func word(_ offset: Int) -> UInt64 {
            unsafe bytes.withUnsafeBytes {
                unsafe UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
        }
        guard word(2) == schema else { return nil }
        isWhole = bytes[1] == 1
        numbers = stride(from: Self.header, to: bytes.count, by: 8).map(word)
    }
}

extension SchemaIndex {
    /// The same for the same schema in every process, and hardly ever for another: the checksum of its stored form.
    ///
    /// Safe: the bytes are read within the closure that lends them.
    ///
    /// - Complexity: O(n) in the schema.
    package var number: UInt64 {
        unsafe serialized().withUnsafeBytes { unsafe wideChecksum($0) }
    }
}
