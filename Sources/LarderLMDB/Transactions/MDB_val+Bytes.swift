import CLMDB

extension MDB_val {
    /// LMDB takes keys and values through a mutable pointer and does not write through it.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    init(_ value: MDB_val) {
        unsafe self.init(start: value.mv_data, count: value.mv_size)
    }

    /// The eight bytes of an integer key, which need not be aligned; zero where there are fewer.
    @inline(__always)
    var integerKey: UInt64 { unsafe count >= 8 ? loadUnaligned(as: UInt64.self) : 0 }
}
