/// The cache keys that a page of a walk had, as they are stored: for each its length in two bytes, little-endian, and its
/// bytes, at most 505.
///
/// Safe: keys are copied while they are lent, and one is given only where all of its bytes were found to be there.
package struct SyncMark: Sendable, Equatable {
    private(set) var bytes: [UInt8]

    init(stored bytes: [UInt8]) { self.bytes = bytes }

    /// The keys of all objects of a response that have one.
    package init(_ parsed: ParsedResponse) {
        bytes = []
        bytes.reserveCapacity(parsed.keys.count + 2 * parsed.entities.count)
        for object in parsed.objects.indices where !parsed.isPart(object) {
            guard parsed.entities[Int(parsed.objects[object].entity)].first == object else { continue }
            unsafe StoredKey.with(parsed.key(of: object)) { unsafe append($0) }
        }
    }

    mutating func append(_ key: UnsafeRawBufferPointer) {
        bytes.append(UInt8(truncatingIfNeeded: key.count))
        bytes.append(UInt8(truncatingIfNeeded: key.count >> 8))
        unsafe bytes.append(contentsOf: key)
    }

    /// Runs `body` with each key; `body` must not keep the bytes.
    func forEachKey(_ body: (UnsafeRawBufferPointer) -> Void) throws(RecordError) {
        let isWhole = unsafe bytes.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count {
                guard start + 2 <= bytes.count else { return false }
                let end = unsafe start + 2 + Int(bytes[start]) + Int(bytes[start + 1]) << 8
                guard end <= bytes.count else { return false }
                unsafe body(UnsafeRawBufferPointer(rebasing: bytes[(start + 2)..<end]))
                start = end
            }
            return true
        }
        guard isWhole else { throw RecordError.damagedPosition }
    }
}
