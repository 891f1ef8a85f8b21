import LarderLMDB

/// What the counters of a generation begin with in every format so far, whatever comes after: the format, and whether
/// the generation is superseded. See `GenerationState`.
///
/// Safe: the array is its own. `init` requires the bytes that every format has, and all of them where it knows the
/// format; only a mark of such a format is ever superseded.
struct GenerationMark {
    static let tables = [TableDefinition(name: "meta", keys: .bytes)]

    private(set) var bytes: [UInt8]

    /// - Throws: `.damaged`.
    init(_ bytes: [UInt8]) throws(RecordError) {
        self.bytes = bytes
        guard bytes.count >= 8 else { throw .damagedState }
        // Later formats may seal theirs otherwise.
        guard format <= CacheFormat.current else { return }
        guard bytes.count == GenerationState.size, storedChecksum == computedChecksum else { throw .damagedState }
    }

    /// - Throws: `.damaged`, also where there are no counters.
    init(_ transaction: borrowing some Transaction & ~Copyable, _ environment: Environment) throws {
        guard let meta = environment.table("meta") else { throw RecordError.damagedState }
        try self.init(Self.stored(transaction, meta))
    }

    /// The bytes of the counters.
    static func stored(_ transaction: borrowing some Transaction & ~Copyable, _ meta: Table) throws -> [UInt8] {
        unsafe try GenerationState.key.withUnsafeBytes { key throws in
            guard let stored = unsafe try transaction.get(key, in: meta) else { throw RecordError.damagedState }
            return unsafe stored.withUnsafeBytes { unsafe Array($0) }
        }
    }

    func store(_ transaction: inout WriteTransaction, _ environment: Environment) throws {
        guard let meta = environment.table("meta") else { throw RecordError.damagedState }
        unsafe try GenerationState.key.withUnsafeBytes { key throws in
            unsafe try bytes.withUnsafeBytes { unsafe try transaction.put(key, $0, in: meta) }
        }
    }

    var format: UInt32 { word(0) }
    var isSuperseded: Bool { word(4) != 0 }

    mutating func supersede() {
        bytes[4] = 1
        unsafe withUnsafeBytes(of: computedChecksum.littleEndian) { unsafe bytes.replaceSubrange(56..<60, with: $0) }
    }

    private var storedChecksum: UInt32 { word(56) }
    private var computedChecksum: UInt32 {
        unsafe bytes.withUnsafeBytes { unsafe checksum(UnsafeRawBufferPointer(rebasing: $0[..<56])) }
    }

    private func word(_ offset: Int) -> UInt32 {
        unsafe bytes.withUnsafeBytes {
            unsafe UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
    }
}
