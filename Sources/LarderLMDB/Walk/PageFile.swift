import LarderFiles

/// A data file read by offset into the caller's memory, never mapped.
struct PageFile {
    private let file: File

    init(_ file: File) { self.file = file }

    var path: String { file.path }

    /// The bytes from an offset; fewer, or none, where the file ends.
    func prefix(at offset: Int64, count: Int) throws(LMDBError) -> [UInt8] {
        try translated { () throws(FileError) in try file.bytes(at: offset, count: count) }
    }

    /// Fills memory with the bytes from an offset on; answers how many there were, fewer where the file ends.
    @inline(__always)
    func read(at offset: Int64, into bytes: UnsafeMutableRawPointer, count: Int) throws(LMDBError) -> Int {
        try translated { () throws(FileError) in try unsafe file.read(at: offset, into: bytes, count: count) }
    }

    /// Fills memory with whole pages; `.truncated` where the file ends first.
    @inline(__always)
    func read(
        _ page: UInt64, count: Int, pageSize: Int, into bytes: UnsafeMutableRawPointer
    ) throws(LMDBError) {
        let wanted = count * pageSize
        let read = try unsafe read(at: Int64(page) * Int64(pageSize), into: bytes, count: wanted)
        guard read == wanted else { throw .truncated(path: path, page: page + UInt64(read / pageSize)) }
    }
}
