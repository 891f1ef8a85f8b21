/// The key of one field of a split record in the table `fields`: RecordID and FieldID, both big-endian, so that a
/// record's fields stand together in ascending order.
struct SplitFieldKey: Equatable {
    static let size = 12
    var record: RecordID
    var field: FieldID

    init(record: RecordID, field: FieldID) {
        self.record = record
        self.field = field
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.size else { return nil }
        record = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        field = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
    }

    var bytes: [UInt8] { withBytes(Array.init) }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withUnsafeTemporaryAllocation(byteCount: Self.size, alignment: 8) { buffer in
            buffer.storeBytes(of: record.bigEndian, toByteOffset: 0, as: UInt64.self)
            buffer.storeBytes(of: field.bigEndian, toByteOffset: 8, as: UInt32.self)
            return try body(UnsafeRawBufferPointer(buffer))
        }
    }
}
