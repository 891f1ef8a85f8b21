import Crypto

/// A file whose bytes can be read anywhere.
protocol RandomAccessFile {
    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError)
}

extension SourceFile: RandomAccessFile {}
extension PartialFile: RandomAccessFile {}

extension RandomAccessFile {
    /// CRC-32C of a range.
    func checksum(_ range: Range<Int64>) async throws -> UInt32 {
        var crc = CRC32C()
        try await scan(range) { crc.update($0) }
        return crc.value
    }

    /// CRC-32C and MD5 of a range, read once.
    func digests(_ range: Range<Int64>) async throws -> (crc32c: UInt32, md5: [UInt8]) {
        var crc = CRC32C()
        var md5 = Insecure.MD5()
        try await scan(range) { bytes in
            crc.update(bytes)
            md5.update(bufferPointer: bytes)
        }
        return (crc.value, Array(md5.finalize()))
    }

    /// SHA-256 of a range.
    func sha256(_ range: Range<Int64>) async throws -> [UInt8] {
        var hash = SHA256()
        try await scan(range) { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }

    /// Reads a range from its beginning to its end, a mebibyte at a time; between these others may use the thread.
    ///
    /// - Throws: What `read` and `body` do; `CancellationError`.
    func scan(_ range: Range<Int64>, _ body: (UnsafeRawBufferPointer) throws -> Void) async throws {
        var buffer = [UInt8](repeating: 0, count: Int(min(1 << 20, max(1, range.upperBound - range.lowerBound))))
        var offset = range.lowerBound
        while offset < range.upperBound {
            try Task.checkCancellation()
            let count = Int(min(Int64(buffer.count), range.upperBound - offset))
            try buffer.withUnsafeMutableBytes { bytes in
                let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                try read(offset, bytes)
                try body(UnsafeRawBufferPointer(bytes))
            }
            offset += Int64(count)
            await Task.yield()
        }
    }
}
