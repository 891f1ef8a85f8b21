package import LarderFiles

extension Environment {
    /// What a commit survives besides a killed process, which every commit survives.
    package enum Durability: Sendable, Hashable {
        /// Power loss too, every commit.
        case full
        /// Power loss may take back the last commits, never damage the tree (`MDB_NOMETASYNC`).
        case withoutMetaSync
        /// Power loss may damage the file (`MDB_NOSYNC`): for what is thrown away anyway.
        case none
    }

    /// When the file is walked page by page before it is mapped.
    package enum Verification: Sendable, Hashable {
        /// Where the stamp of the last clean close does not fit the file, and no other process has it open.
        case unlessCleanlyClosed
        case always
    }

    package struct Options: Sendable {
        /// Bytes of address space that the map may take, and so the file's greatest size. Takes no memory and no disk.
        ///
        /// As much of it as can be had is reserved at first: growing a map needs a moment without any transaction.
        package var mapSize = 64 << 30
        /// Bytes to reserve at first; all of `mapSize` where nil.
        package var startingMapSize: Int?
        /// Read transactions that may be open at once, in all processes together.
        package var maxReaders = 510
        package var durability = Durability.full
        /// Reads only: makes nothing but LMDB's reader table and the lock files, and those only where the folder lets
        /// it.
        package var isReadOnly = false
        /// Opens only what is there: where the data file is missing the error is `.missing`, and nothing is made.
        package var mustExist = false
        package var verification = Verification.unlessCleanlyClosed
        /// Who this is, for the error message of another who waits for the writer lock.
        package var lockLabel = "larder"
        /// How long opening may wait for another process that verifies or writes.
        package var lockTimeout = Duration.seconds(5)
        /// By which this layer makes its own calls of the system; LMDB makes others.
        package var files = FileSystem()

        package init() {}
    }
}
