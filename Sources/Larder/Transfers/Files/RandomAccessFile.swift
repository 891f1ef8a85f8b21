internal import Crypto

/// A file whose bytes can be read anywhere.
protocol RandomAccessFile {
    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError)
}

extension SourceFile: RandomAccessFile {}
extension PartialFile: RandomAccessFile {}

extension RandomAccessFile {
    /// CRC-32C of a range.
    func checksum(_ range: Range<Int64>) throws(LarderError) -> UInt32 {
        var crc = CRC32C()
        try scan(range) { crc.update($0) }
        return crc.value
    }

    /// CRC-32C and MD5 of a range, read once.
    func digests(_ range: Range<Int64>) throws(LarderError) -> (crc32c: UInt32, md5: [UInt8]) {
        var crc = CRC32C()
        var md5 = Insecure.MD5()
        try scan(range) { bytes in
            crc.update(bytes)
            md5.update(bufferPointer: bytes)
        }
        return (crc.value, Array(md5.finalize()))
    }

    /// SHA-256 of a range.
    func sha256(_ range: Range<Int64>) throws(LarderError) -> [UInt8] {
        var hash = SHA256()
        try scan(range) { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }

    /// Reads a range from its beginning to its end, a mebibyte at a time.
    func scan(
        _ range: Range<Int64>, _ body: (UnsafeRawBufferPointer) throws(LarderError) -> Void
    ) throws(LarderError) {
        var buffer = [UInt8](repeating: 0, count: Int(min(1 << 20, max(1, range.upperBound - range.lowerBound))))
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(Int64(buffer.count), range.upperBound - offset))
            let result = buffer.withUnsafeMutableBytes { bytes -> Result<Void, LarderError> in
                do throws(LarderError) {
                    let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                    try read(offset, bytes)
                    try body(UnsafeRawBufferPointer(bytes))
                    return .success(())
                } catch { return .failure(error) }
            }
            try result.get()
            offset += Int64(count)
        }
    }
}
