/// The key of one field of a split record in the table `fields`: RecordID and FieldID, both big-endian, so that a
/// record's fields stand together in ascending order.
///
/// The value is a checksum of the rest and of the key, a value word, and the word's payload; offsets count from the
/// checksum's first byte.
///
/// Safe: bytes are read while the caller lends them, and once they are found to be enough; `withBytes` has room for a
/// key, until `body` returns.
struct SplitFieldKey: Hashable {
    static let size = 12
    /// The bytes of a value before its payload.
    static let header = 8
    var record: RecordID
    var field: FieldID

    init(record: RecordID, field: FieldID) {
        self.record = record
        self.field = field
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.size else { return nil }
        record = unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        field = unsafe UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
    }

    /// The checksum of a value of at least four bytes.
    func checksum(of value: UnsafeRawBufferPointer) -> UInt32 {
        unsafe LarderRecords.checksum(
            UnsafeRawBufferPointer(rebasing: value[4...]), seed: record ^ UInt64(field) << 32)
    }

    func isSound(_ value: UnsafeRawBufferPointer) -> Bool {
        unsafe value.count >= Self.header
            && checksum(of: value) == UInt32(littleEndian: value.loadUnaligned(as: UInt32.self))
    }

    var bytes: [UInt8] { unsafe withBytes(Array.init) }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        unsafe try withUnsafeTemporaryAllocation(byteCount: Self.size, alignment: 8) { buffer in
            unsafe buffer.storeBytes(of: record.bigEndian, toByteOffset: 0, as: UInt64.self)
            unsafe buffer.storeBytes(of: field.bigEndian, toByteOffset: 8, as: UInt32.self)
            return unsafe try body(UnsafeRawBufferPointer(buffer))
        }
    }
}
