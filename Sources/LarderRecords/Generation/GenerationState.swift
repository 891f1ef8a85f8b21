import LarderLMDB

/// The counters of a generation, one entry of `meta` that every commit rewrites.
///
/// | bytes | |
/// | --- | --- |
/// | 0-3 | format: 1 |
/// | 4-7 | 1 if the generation is superseded, otherwise 0 |
/// | 8-15 | epoch: chosen at random when change numbers start anew |
/// | 16-23 | the next RecordID |
/// | 24-31 | the next FieldID |
/// | 32-39 | the number of the last change |
/// | 40-47 | the number of the first change that the log still holds |
/// | 48-55 | numbering: chosen at random when RecordIDs and FieldIDs start anew |
/// | 56-59 | checksum of bytes 0-55 |
///
/// Safe: the caller lends the bytes for the length of the call, which looks how many they are before it reads them.
struct GenerationState: Equatable {
    static let format: UInt32 = 1
    static let size = 60
    static let key = Array("state".utf8)

    var isSuperseded = false
    var epoch: UInt64
    var nextRecord: RecordID = 1
    var nextField: FieldID = 1
    var lastChange: UInt64 = 0
    var firstChange: UInt64 = 1
    var numbering: UInt64

    init(epoch: UInt64, numbering: UInt64) {
        self.epoch = epoch
        self.numbering = numbering
    }

    /// The counters of an empty generation.
    static func fresh() -> GenerationState {
        GenerationState(epoch: .random(in: .min ... .max), numbering: .random(in: .min ... .max))
    }

    /// The newest change.
    var position: ChangePosition { ChangePosition(epoch: epoch, number: lastChange) }

    /// Makes all positions that were noted so far tell nothing any more.
    mutating func startEpoch() {
        epoch = .random(in: .min ... .max)
        firstChange = lastChange + 1
    }

    init(_ bytes: UnsafeRawBufferPointer) throws(RecordError) {
        guard bytes.count >= 4 else { throw .damagedState }
        let format = unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
        guard format >= Self.format else {
            throw RecordError(
                .olderFormat,
                "The cache has format \(format), and this program works with format \(Self.format); "
                    + "larder-migrate up makes it one of that, or remove the cache and fetch again")
        }
        guard format == Self.format else {
            throw RecordError(
                .futureFormat,
                "The cache has format \(format), and this program knows format \(Self.format); use a "
                    + "newer program, or remove the cache and fetch again")
        }
        guard bytes.count == Self.size,
            unsafe checksum(UnsafeRawBufferPointer(rebasing: bytes[..<56]))
                == UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 56, as: UInt32.self))
        else { throw .damagedState }
        func word(_ offset: Int) -> UInt64 {
            unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        isSuperseded = unsafe bytes[4] != 0
        epoch = word(8)
        nextRecord = word(16)
        nextField = FieldID(truncatingIfNeeded: word(24))
        lastChange = word(32)
        firstChange = word(40)
        numbering = word(48)
        // They are counted on, and none is given that is near the end of its range.
        guard (1..<OverlayNumbers.firstRecord).contains(nextRecord),
            (1..<UInt64(OverlayNumbers.firstField)).contains(word(24)),
            lastChange < 1 << 62, (1...lastChange + 1).contains(firstChange)
        else { throw .damagedState }
    }

    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.size)
        appendLittleEndian(Self.format, to: &bytes)
        appendLittleEndian(UInt32(isSuperseded ? 1 : 0), to: &bytes)
        for word in [epoch, nextRecord, UInt64(nextField), lastChange, firstChange, numbering] {
            appendLittleEndian(word, to: &bytes)
        }
        unsafe appendLittleEndian(bytes.withUnsafeBytes { unsafe checksum($0) }, to: &bytes)
        return bytes
    }

    /// The counters of a generation; nil if it has none.
    static func read(
        _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> GenerationState? {
        guard let stored = try transaction.get(key.rawSpan, in: tables.meta) else { return nil }
        return unsafe try stored.withUnsafeBytes { bytes throws(RecordError) in unsafe try GenerationState(bytes) }
    }

    /// The counters of a generation, which has some unless it is damaged.
    static func stored(
        _ transaction: borrowing some RecordSnapshot & ~Copyable, _ tables: Tables
    ) throws -> GenerationState {
        guard let state = try read(transaction, tables) else { throw RecordError.damagedState }
        return state
    }
}

extension GenerationState {
    func store(_ transaction: inout WriteTransaction, _ tables: Tables) throws {
        let bytes = encoded
        try transaction.put(Self.key.rawSpan, bytes.rawSpan, in: tables.meta)
    }
}

extension RecordError {
    static var damagedState: RecordError {
        RecordError(.damaged, "The cache's counters are damaged; remove the cache and fetch again")
    }
}
