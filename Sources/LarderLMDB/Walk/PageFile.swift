/// A data file read by offset into the caller's memory, never mapped.
struct PageFile {
    let descriptor: Int32
    let path: String

    /// The bytes from an offset; fewer, or none, where the file ends.
    func prefix(at offset: Int64, count: Int) throws(LMDBError) -> [UInt8] {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, count), alignment: 16)
        defer { bytes.deallocate() }
        guard let start = bytes.baseAddress else { return [] }
        let read = try FileSystem.read(descriptor, at: offset, into: start, count: count, path: path)
        return Array(bytes[..<read])
    }

    /// Fills memory with whole pages; `.truncated` where the file ends first.
    @inline(__always)
    func read(
        _ page: UInt64, count: Int, pageSize: Int, into bytes: UnsafeMutableRawPointer
    ) throws(LMDBError) {
        let wanted = count * pageSize
        let offset = Int64(page) * Int64(pageSize)
        let read = try FileSystem.read(descriptor, at: offset, into: bytes, count: wanted, path: path)
        guard read == wanted else { throw .truncated(path: path, page: page + UInt64(read / pageSize)) }
    }
}
