import CLMDB

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension Environment {
    func checkSize(of byteCount: Int) throws(LMDBError) {
        guard byteCount <= Int(UInt32.max) - 16 else {
            throw LMDBError(.valueTooLong, "A value holds less than 4 GiB; split it.")
        }
    }

    /// What a failed write means. A full map clears the dead readers, whose pages may make room.
    func writeFailure(_ status: Int32, doing: String) -> LMDBError {
        if status == MDB_MAP_FULL, dropDeadReaders() > 0 {
            let text = "\(doing): the map is full. Dead readers held pages and were cleared; try again."
            return LMDBError(.mapFull, text, path: folder, status: status, isWorthRepeating: true)
        }
        // LMDB says EIO where the system wrote less than it was asked to.
        if status == EIO, files.data.hasNoRoom { return .make(ENOSPC, doing: doing, path: folder) }
        return .make(status, doing: doing, path: folder)
    }
}
