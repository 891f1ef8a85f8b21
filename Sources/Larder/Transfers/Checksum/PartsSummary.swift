/// What the parts of an object, in their order, say of the whole.
package struct PartsSummary: Sendable {
    package let size: Int64
    package let crc32c: UInt32

    /// Nil where it is not known of each part.
    package init?(_ parts: [UploadedPart]) {
        guard let size = Self.size(parts) else { return nil }
        var crc32c = CRC32C().value
        for part in parts {
            guard let next = part.crc32c, let length = part.size else { return nil }
            crc32c = CRC32C.combine(crc32c, next, length: length)
        }
        (self.size, self.crc32c) = (size, crc32c)
    }

    /// The sizes of all parts together.
    package static func size(_ parts: [UploadedPart]) -> Int64? {
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
