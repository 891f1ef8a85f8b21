import CLMDB
import LarderFiles

extension Environment {
    /// Writes a snapshot as a new environment into a folder, which is made and must hold none. Durable on return.
    ///
    /// - Parameter compacting: leaves out free pages and puts the others in order; starts again at transaction 1.
    package func copy(to target: String, compacting: Bool) throws(LMDBError) {
        try pinned { () throws(LMDBError) in
            try translated { () throws(FileError) in try options.files.makeFolder(target) }
            try files.unregistered?.enter()
            defer { files.unregistered?.leave() }
            // A plain copy takes LMDB's writer lock for a moment, which would wait for ever on a stopped writer.
            let writer = compacting ? nil : files.writer
            try writer?.acquire(deadline: .now + options.lockDeadline)
            defer { writer?.release() }
            let path = target + "/data.mdb"
            // LMDB would make the file readable for all users, as far as the process's mask lets it.
            let file = try translated { () throws(FileError) in try options.files.open(path, [.writing, .new]) }
            let status = withExtendedLifetime(file) {
                mdb_env_copyfd2(handle, file.descriptor, compacting ? UInt32(MDB_CP_COMPACT) : 0)
            }
            guard status == MDB_SUCCESS else {
                _ = try? options.files.remove(path)
                // Compacting counts on every page being in use or free.
                let meaning = compacting && status == MDB_INCOMPATIBLE ? MDB_CORRUPTED : status
                throw .make(meaning, doing: "copying the environment", path: path)
            }
            try translated { () throws(FileError) in
                try file.synchronize()
                try options.files.synchronizeFolder(target)
            }
        }
    }
}
