internal import CLMDB

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension Environment {
    /// Writes a snapshot as a new environment into a folder, which is made and must hold none. Durable on return.
    ///
    /// - Parameter compacting: leaves out free pages and puts the others in order; starts again at transaction 1.
    package func copy(to target: String, compacting: Bool) throws(LMDBError) {
        try pinned { () throws(LMDBError) in
            try FileSystem.makeFolder(target)
            try files.unregistered?.enter()
            defer { files.unregistered?.leave() }
            // A plain copy takes LMDB's writer lock for a moment, which would wait for ever on a stopped writer.
            let writer = compacting ? nil : files.writer
            try writer?.acquire(deadline: .now + options.lockDeadline)
            defer { writer?.release() }
            let status = mdb_env_copy2(handle, target, compacting ? UInt32(MDB_CP_COMPACT) : 0)
            let path = target + "/data.mdb"
            guard status == MDB_SUCCESS else {
                // A file that was there before is not ours to remove.
                if status != EEXIST { unlink(path) }
                // Compacting counts on every page being in use or free.
                let meaning = compacting && status == MDB_INCOMPATIBLE ? MDB_CORRUPTED : status
                throw .make(meaning, doing: "copying the environment", path: path)
            }
            try FileSystem.synchronize(path)
            try FileSystem.synchronize(target)
        }
    }
}
