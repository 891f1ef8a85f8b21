import CChecksums

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4): what storages compare bytes by.
///
/// Computed by the processor's own instructions where it has them, at about the speed of memory; else by tables.
package struct CRC32C: Sendable, Hashable {
    /// The register: inverted, as it is kept between bytes.
    private var state: UInt32 = 0xFFFF_FFFF

    /// Of no bytes.
    package init() {}

    /// Of these bytes.
    package init(of bytes: some Collection<UInt8>) {
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { update(UnsafeRawBufferPointer($0)) }
        if isDone == nil { Array(bytes).withUnsafeBytes { update($0) } }
    }

    /// The checksum of all that was added.
    package var value: UInt32 { ~state }

    /// Adds bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
        if Self.hasInstructions {
            // `start` is the start of `bytes.count` bytes, which it reads and nothing else.
            state = larder_crc32c(state, start, bytes.count)
        } else {
            updateByTables(bytes)
        }
    }

    private static let hasInstructions = larder_crc32c_is_available()
}

extension CRC32C {
    /// The checksum of bytes followed by others, from the checksums of both.
    ///
    /// - Parameter length: How many bytes the second is of.
    /// - Complexity: Logarithmic in `length`.
    package static func combine(_ first: UInt32, _ second: UInt32, length: Int64) -> UInt32 {
        guard length > 0 else { return first }
        return multiplied(first, power(ofBytes: UInt64(length))) ^ second
    }

    private static let polynomial: UInt32 = 0x82F6_3B78

    /// The product of two polynomials, modulo the polynomial of the checksum. The highest bit stands for x^0.
    private static func multiplied(_ a: UInt32, _ b: UInt32) -> UInt32 {
        var (product, shifted) = (UInt32(0), b)
        for bit in (0..<32).reversed() {
            if a >> UInt32(bit) & 1 == 1 { product ^= shifted }
            shifted = shifted & 1 == 1 ? (shifted >> 1) ^ polynomial : shifted >> 1
        }
        return product
    }

    /// x^(8 * count), modulo the polynomial.
    private static func power(ofBytes count: UInt64) -> UInt32 {
        var (result, square, rest) = (UInt32(1) << 31, UInt32(1) << 23, count)
        while rest > 0 {
            if rest & 1 == 1 { result = multiplied(result, square) }
            square = multiplied(square, square)
            rest >>= 1
        }
        return result
    }
}

extension CRC32C {
    /// Eight tables of 256: the remainder of a byte that has so many bytes behind it.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var remainder = UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 1 ? (remainder >> 1) ^ polynomial : remainder >> 1 }
            tables[byte] = remainder
        }
        for index in 256..<(8 * 256) {
            let before = tables[index - 256]
            tables[index] = (before >> 8) ^ tables[Int(before & 0xFF)]
        }
        return tables
    }()

    /// As `update`, eight bytes at a time, without the instructions.
    package mutating func updateByTables(_ bytes: UnsafeRawBufferPointer) {
        let whole = bytes.count & ~7
        var register = state
        Self.tables.withUnsafeBufferPointer { tables in
            for at in stride(from: 0, to: whole, by: 8) {
                let word =
                    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self))
                    ^ UInt64(register)
                register = 0
                for place in 0..<8 {
                    register ^= tables[(7 - place) * 256 + Int(word >> UInt64(8 * place) & 0xFF)]
                }
            }
            for byte in bytes[whole...] {
                register = (register >> 8) ^ tables[Int((register ^ UInt32(byte)) & 0xFF)]
            }
        }
        state = register
    }
}
