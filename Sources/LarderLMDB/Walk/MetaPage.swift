/// One of the two pages at the start of a data file, each of which names a snapshot.
///
/// ```
/// 0    8  page number          16   4  magic 0xBEEFC0DE     40   48  free tree (its first field: page size)
/// 8    2  -                    20   4  version, 1           88   48  main tree
/// 10   2  flags: 8             24   8  -                    136   8  last page
/// 12   4  -                    32   8  map size             144   8  transaction
/// ```
/// All numbers are in the machine's own byte order.
struct MetaPage: Hashable {
    var pageSize: Int
    var mapSize: UInt64
    var freeTree: TreeRecord
    var mainTree: TreeRecord
    var lastPage: UInt64
    var transaction: UInt64

    static let byteCount = 152
    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let version: UInt32 = 1
    private static let flags: UInt16 = 8

    static func hasMagic(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe bytes.count >= 20 && bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self) == magic
    }

    /// - Parameter bytes: at least `byteCount` bytes from the start of the page.
    init(_ bytes: UnsafeRawBufferPointer, page: UInt64, path: String) throws(LMDBError) {
        func damaged(_ what: String) -> LMDBError { .damagedPage(what, path: path, page: page) }
        guard bytes.count >= Self.byteCount else { throw damaged("its meta page is cut short") }
        func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: Number.Type) -> Number {
            unsafe bytes.loadUnaligned(fromByteOffset: offset, as: type)
        }
        guard unsafe Self.hasMagic(bytes) else { throw damaged("its meta page has no magic number") }
        let version = load(20, as: UInt32.self)
        guard version == Self.version else {
            let text = "The file has LMDB format \(version), this library reads \(Self.version)."
            let advice = "Open it with the version that wrote it, or rebuild it."
            throw LMDBError(.futureVersion, "\(text) \(advice)", path: path, page: page)
        }
        guard load(0, as: UInt64.self) == page, load(10, as: UInt16.self) == Self.flags else {
            throw damaged("its meta page does not call itself one")
        }
        pageSize = Int(load(40, as: UInt32.self))
        guard pageSize >= 512, pageSize <= 32_768, pageSize & (pageSize - 1) == 0 else {
            throw damaged("its page size would be \(pageSize)")
        }
        mapSize = load(32, as: UInt64.self)
        freeTree = unsafe TreeRecord(bytes.baseAddress.unsafelyUnwrapped + 40)
        mainTree = unsafe TreeRecord(bytes.baseAddress.unsafelyUnwrapped + 88)
        lastPage = load(136, as: UInt64.self)
        transaction = load(144, as: UInt64.self)
        // A page past the greatest map cannot be addressed; the bound keeps every product below in range.
        guard lastPage >= 1, lastPage < 1 << 47 else { throw damaged("its last page would be \(lastPage)") }
    }

    /// The meta page that LMDB would use: that of the newer transaction, the first where both are equal.
    ///
    /// LMDB reads both and refuses the file where either is not one; so does this.
    static func newest(in file: PageFile) throws(LMDBError) -> MetaPage {
        let first = try file.prefix(at: 0, count: byteCount)
        guard first.count >= 20, unsafe first.withUnsafeBytes({ unsafe hasMagic($0) }) else {
            // A damaged first page of an LMDB file differs from another program's file by its second page. LMDB's pages
            // are as large as the system's, at most 32 KiB; the first page, which says how large, cannot be read.
            var isLMDB = false
            for pageSize: Int64 in [4_096, 8_192, 16_384, 32_768] where !isLMDB {
                isLMDB = try unsafe file.prefix(at: pageSize, count: byteCount).withUnsafeBytes { unsafe hasMagic($0) }
            }
            guard isLMDB else {
                throw LMDBError(
                    .foreign, "This is not an LMDB file; check the folder, or remove the file.", path: file.path)
            }
            throw .damagedPage("its meta page has no magic number", path: file.path, page: 0)
        }
        guard first.count == byteCount else { throw .truncated(path: file.path, page: 0) }
        var metas: [MetaPage] = []
        metas.append(try parse(first, page: 0, path: file.path))
        let second = try file.prefix(at: Int64(metas[0].pageSize), count: byteCount)
        guard second.count == byteCount else { throw .truncated(path: file.path, page: 1) }
        metas.append(try parse(second, page: 1, path: file.path))
        guard metas[0].pageSize == metas[1].pageSize else {
            throw .damagedPage("its meta pages have different page sizes", path: file.path, page: 1)
        }
        let index = metas[0].transaction < metas[1].transaction ? 1 : 0
        // Transactions find their meta page by their number's lowest bit.
        guard metas[index].transaction & 1 == UInt64(index) else {
            let what = "its transaction number \(metas[index].transaction) belongs on the other meta page"
            throw .damagedPage(what, path: file.path, page: UInt64(index))
        }
        let meta = metas[index]
        guard meta.mapSize / UInt64(meta.pageSize) > meta.lastPage else {
            let what = "its last page \(meta.lastPage) lies past its map of \(meta.mapSize) bytes"
            throw .damagedPage(what, path: file.path, page: UInt64(index))
        }
        return meta
    }

    private static func parse(_ bytes: [UInt8], page: UInt64, path: String) throws(LMDBError) -> MetaPage {
        try unsafe bytes.rawSpan.withUnsafeBytes { (bytes) throws(LMDBError) in
            try unsafe MetaPage(bytes, page: page, path: path)
        }
    }
}

extension LMDBError {
    @inline(never)
    static func damagedPage(_ what: String, path: String, page: UInt64) -> LMDBError {
        let advice = "Rebuild the environment; its contents can be fetched again."
        return LMDBError(.damaged, "The file is damaged: \(what). \(advice)", path: path, page: page)
    }

    @inline(never)
    static func truncated(path: String, page: UInt64) -> LMDBError {
        let advice = "Rebuild the environment; its contents can be fetched again."
        return LMDBError(.truncated, "The file ends before a page in use. \(advice)", path: path, page: page)
    }
}
