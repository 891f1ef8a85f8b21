import LarderFiles

/// What a data file looked like when it was closed cleanly, kept beside it.
///
/// ```
/// 0   8  "LardrCls"
/// 8   8  version, 1
/// 16  8  size of the data file in bytes
/// 24  8  its modification time, ns since 1970
/// 32  8  its newest transaction
/// 40  8  its inode
/// 48  8  FNV-1a over bytes 0..<48
/// ```
/// All numbers are little-endian.
struct CleanCloseStamp: Hashable {
    var size: Int64
    var modified: Int64
    var transaction: UInt64
    var inode: UInt64

    private static let magic: [UInt8] = Array("LardrCls".utf8)
    private static let version: UInt64 = 1
    private static let byteCount = 56

    init(_ status: FileStatus, transaction: UInt64) {
        size = status.size
        modified = status.modified
        inode = status.inode
        self.transaction = transaction
    }

    /// The stamp in a folder; nil where there is none that can be read and trusted.
    init?(folder: String, in files: FileSystem) {
        // One byte more, so that a longer file is told.
        let count = Self.byteCount + 1
        guard let bytes = try? files.open(Self.path(in: folder)).bytes(at: 0, count: count),
            bytes.count == Self.byteCount, bytes.starts(with: Self.magic)
        else { return nil }
        func number(_ offset: Int) -> UInt64 {
            bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        guard number(8) == Self.version, number(48) == Self.checksum(bytes[..<48]) else { return nil }
        size = Int64(bitPattern: number(16))
        modified = Int64(bitPattern: number(24))
        transaction = number(32)
        inode = number(40)
    }

    func write(in folder: String, _ files: FileSystem) throws(FileError) {
        var bytes = Self.magic
        func append(_ number: UInt64) {
            for shift in stride(from: 0 as UInt64, to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        append(Self.version)
        append(UInt64(bitPattern: size))
        append(UInt64(bitPattern: modified))
        append(transaction)
        append(inode)
        append(Self.checksum(bytes[...]))
        try files.replace(Self.path(in: folder), with: bytes)
    }

    static let name = "clean.stamp"
    static func path(in folder: String) -> String { "\(folder)/\(name)" }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}
