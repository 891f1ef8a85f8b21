import LarderLMDB

/// When the records of `width` numbers that follow each other came: an entry of the table `received` under what their
/// numbers have in common, in eight bytes, big-endian.
///
/// A checksum of the rest and of the key, then a slot of four bytes for each record, little-endian: see `ReceivedSlot`.
/// Where all slots are the same, as after one large answer, only one is kept.
/// Times stand apart from the records, so that an answer that came before changes them alone, and few pages.
///
/// Safe: bytes are read while the caller lends them, and once they are found to be as many as a block has.
enum ReceivedBlock {
    private static let shift: UInt64 = 5
    static let width = 1 << Int(shift)
    private static let size = 4 + 4 * width
    private static let uniformSize = 8
    static let empty = Array(repeating: ReceivedSlot.none, count: width)

    static func number(of id: RecordID) -> UInt64 { id >> shift }
    static func index(of id: RecordID) -> Int { Int(id & (UInt64(width) - 1)) }
    /// The number, as `key` has it; nil where the bytes are no block's key.
    static func number(ofKey key: UnsafeRawBufferPointer) -> UInt64? {
        unsafe key.count == 8 ? UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) : nil
    }

    static func withKey<Result>(
        _ number: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        unsafe try withUnsafeBytes(of: number.bigEndian) { unsafe try body($0) }
    }

    static func firstRecord(of number: UInt64) -> RecordID { number << shift }

    static func encoded(_ slots: [ReceivedSlot], number: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        let isUniform = slots.dropFirst().allSatisfy { $0 == slots[0] }
        for slot in isUniform ? slots.prefix(1) : slots[...] { appendLittleEndian(slot.bits, to: &bytes) }
        return SealedText.encoded(bytes, seed: number)
    }

    /// Whether one slot stands for all.
    @inline(__always)
    static func isUniform(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.count == uniformSize }

    /// The slot of a record; none in bytes that are no block.
    @inline(__always)
    static func slot(_ index: Int, in bytes: UnsafeRawBufferPointer) -> ReceivedSlot {
        guard bytes.count == size || bytes.count == uniformSize else { return .none }
        let offset = bytes.count == size ? 4 + 4 * index : 4
        return unsafe ReceivedSlot(
            bits: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }

    static func slots(_ bytes: UnsafeRawBufferPointer) -> [ReceivedSlot] {
        (0..<width).map { unsafe slot($0, in: bytes) }
    }

    static func isSound(_ bytes: UnsafeRawBufferPointer, number: UInt64) -> Bool {
        unsafe (bytes.count == size || bytes.count == uniformSize) && SealedText.isSound(bytes, seed: number)
    }
}

/// When a record came, and whether there are rows for its fields.
struct ReceivedSlot: Equatable {
    /// Nothing is known.
    static let none = ReceivedSlot(bits: 0)
    private static let flag: UInt32 = 1 << 31

    let bits: UInt32

    init(bits: UInt32) { self.bits = bits }

    init(_ time: ReceivedTime, hasRows: Bool) {
        bits = time.seconds & ReceivedTime.greatest | (hasRows ? Self.flag : 0)
    }

    /// When the fields came that have no times of their own.
    @inline(__always)
    var time: ReceivedTime { ReceivedTime(seconds: bits & ReceivedTime.greatest) }
    @inline(__always)
    var hasRows: Bool { bits & Self.flag != 0 }
}

/// When fields came that have times of their own: an entry of the table `received` too, whose keys have 12
/// bytes.
///
/// Under a record and the field 0 stand the fields that the last answer left out: a FieldID and a time for each, in
/// ascending order. Under a record and a field, where each field has a time of its own as those of the root of all
/// queries and of split records have, stand its time and its maximum age in seconds. A checksum of the rest and of the
/// key comes first; numbers have four bytes, little-endian.
///
/// Safe: bytes are read while the caller lends them, at offsets below their count.
enum ReceivedRow {
    static func encoded(_ pairs: [(UInt32, UInt32)], under key: SplitFieldKey) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(pairs.count * 8)
        for (first, second) in pairs {
            appendLittleEndian(first, to: &bytes)
            appendLittleEndian(second, to: &bytes)
        }
        return SealedText.encoded(bytes, seed: seed(key))
    }

    static func pairs(_ bytes: UnsafeRawBufferPointer) -> [(UInt32, UInt32)] {
        func word(_ offset: Int) -> UInt32 {
            unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        return stride(from: 4, to: max(bytes.count - 7, 4), by: 8).map { (word($0), word($0 + 4)) }
    }

    static func isSound(_ bytes: UnsafeRawBufferPointer, under key: SplitFieldKey) -> Bool {
        unsafe bytes.count >= 12 && bytes.count % 8 == 4 && SealedText.isSound(bytes, seed: seed(key))
    }

    private static func seed(_ key: SplitFieldKey) -> UInt64 { key.record ^ UInt64(key.field) << 32 }
}

extension Tables {
    /// The slots of a block; all empty where there is no such block.
    func receivedSlots(
        _ number: UInt64, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> [ReceivedSlot] {
        guard let received else { return ReceivedBlock.empty }
        return unsafe try ReceivedBlock.withKey(number) { key throws in
            unsafe try transaction.get(key, in: received)?.withUnsafeBytes { unsafe ReceivedBlock.slots($0) }
                ?? ReceivedBlock.empty
        }
    }

    /// The times under a key; none where there is no such row.
    func receivedPairs(
        _ key: SplitFieldKey, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> [(UInt32, UInt32)] {
        guard let received else { return [] }
        return unsafe try key.withBytes { bytes throws in
            unsafe try transaction.get(bytes, in: received)?.withUnsafeBytes { unsafe ReceivedRow.pairs($0) }
                ?? []
        }
    }
}
