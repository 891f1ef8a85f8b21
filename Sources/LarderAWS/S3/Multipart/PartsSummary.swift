import Larder

/// What the parts of an object say of the whole.
struct PartsSummary: Sendable {
    let size: Int64
    let crc32c: UInt32

    /// Nil where it is not known of each part.
    init?(_ parts: [UploadedPart]) {
        guard let size = Self.size(parts) else { return nil }
        var crc32c: UInt32 = 0
        for part in parts {
            guard let next = part.crc32c, let length = part.size else { return nil }
            crc32c = CRC32C.combine(crc32c, next, length: length)
        }
        (self.size, self.crc32c) = (size, crc32c)
    }

    /// The sizes of all parts together.
    static func size(_ parts: [UploadedPart]) -> Int64? {
        var sum: Int64 = 0
        for part in parts {
            guard let size = part.size, size >= 0 else { return nil }
            let (next, overflows) = sum.addingReportingOverflow(size)
            if overflows { return nil }
            sum = next
        }
        return sum
    }
}
