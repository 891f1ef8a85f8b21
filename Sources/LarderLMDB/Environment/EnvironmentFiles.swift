import LarderFiles
import Synchronization

/// Everything that an open environment holds beside LMDB's own handle: the data file, its registration in this
/// process, and the locks.
final class EnvironmentFiles: Sendable {
    let data: DataFile
    /// Nil where the environment is read-only and the folder takes no lock file.
    let writer: WriterLock?
    /// Where readers cannot be registered; nil where LMDB does.
    let unregistered: UnregisteredReading?
    private let folder: String
    private let options: Environment.Options
    private let registration: OpenFiles.Registration
    private let presence: PresenceLock?
    private let mustSettle: Bool
    /// Whether no stamp is on the disk, as far as this process has synced the folder and left none since.
    private let hasNoStamp = Atomic<Bool>(false)
    /// Whether the data file was walked because no stamp of a clean close fitted it.
    let wasVerified: Bool
    /// Whether it was, or the process that had it open before this one had found it so.
    let mayHaveLostCommits: Bool

    /// Claims the files, and verifies the data file where that is due. Nothing is mapped yet.
    init(folder: String, options: Environment.Options, openedBy: String) throws(LMDBError) {
        self.folder = folder
        self.options = options
        if !options.isReadOnly, !options.mustExist {
            try translated { () throws(FileError) in try options.files.makeFolder(folder) }
        }
        data = try DataFile(folder: folder, options: options)
        registration = try OpenFiles.register(
            data.identity, by: openedBy, path: data.path, deadline: .now + options.lockTimeout)
        writer = try Self.writerLock(folder: folder, options: options)
        presence = try PresenceLock(folder: folder, options: options)
        let entry = try presence?.enter(deadline: .now + options.lockTimeout) ?? .first
        let isFirst = entry == .first
        mustSettle = isFirst
        unregistered = try Self.readerTable(in: folder, options, isFirst: isFirst)
        wasVerified = try Self.verify(data, writer, folder: folder, options: options, isFirst: isFirst)
        mayHaveLostCommits = wasVerified || entry == .recovered
    }

    /// Makes LMDB's reader table, or answers how to read without.
    private static func readerTable(
        in folder: String, _ options: Environment.Options, isFirst: Bool
    ) throws(LMDBError) -> UnregisteredReading? {
        do throws(FileError) {
            if isFirst {
                try allocateReaderTable(in: folder, options)
            } else if options.isReadOnly {
                // Fails as writing to the table would.
                _ = try options.files.open(folder + "/lock.mdb", [.reading, .writing, .making])
            }
            return nil
        } catch {
            guard options.isReadOnly, UnregisteredReading.isNeeded(after: error) else { throw LMDBError(error) }
            return UnregisteredReading(folder: folder, options: options)
        }
    }

    /// Takes disk for LMDB's reader table, which LMDB maps as a hole: on a full disk touching it would be a signal.
    ///
    /// Only for the first opener: no other process has it mapped.
    private static func allocateReaderTable(in folder: String, _ options: Environment.Options) throws(FileError) {
        // Readers and LMDB's header take 64 bytes each, the header on some systems some more.
        let size = (max(1, min(options.maxReaders, 1 << 20)) * 64 + 4096) & ~4095
        try options.files.fill(folder + "/lock.mdb", to: size)
    }

    private static func writerLock(
        folder: String, options: Environment.Options
    ) throws(LMDBError) -> WriterLock? {
        do throws(FileError) {
            return try WriterLock(folder: folder, options: options)
        } catch {
            guard options.isReadOnly, error.code == .missing else { throw LMDBError(error) }
            return nil
        }
    }

    /// Lets other processes in, once the environment is mapped.
    func settle() throws(LMDBError) {
        if mustSettle { try presence?.settle(isRecovered: wasVerified, deadline: .now + options.lockTimeout) }
    }

    /// Stamps the data file as cleanly closed, unless another writer holds the lock or the stamp fits already.
    ///
    /// - Parameter synchronize: makes the data file durable, which must come before a stamp that vouches for it.
    func stamp(synchronize: () throws(LMDBError) -> Void) throws(LMDBError) {
        guard !options.isReadOnly, let writer, try writer.tryAcquire() else { return }
        defer { writer.release() }
        guard try CleanCloseStamp(folder: folder, in: options.files) != currentStamp() else { return }
        try synchronize()
        // Synchronizing writes, which moves the file's time.
        let stamp = try currentStamp()
        try translated { () throws(FileError) in
            do throws(FileError) { try stamp.write(in: folder, options.files) } catch {
                // Another process has removed the folder: no opener will ask what the stamp would tell.
                guard error.code == .missing, try !options.files.exists(folder) else { throw error }
            }
        }
    }

    private func currentStamp() throws(LMDBError) -> CleanCloseStamp {
        let meta = try MetaPage.newest(in: data.pages)
        return CleanCloseStamp(try data.status(), transaction: meta.transaction)
    }

    /// Removes the stamp for good; false where it stays, or may come back after power loss. Only for the holder of the
    /// writer's lock.
    func revokeStamp() -> Bool {
        do throws(FileError) {
            let wasThere = try options.files.remove(CleanCloseStamp.path(in: folder))
            // A stamp that is not there may be on the disk: another process, or an earlier life of this one, may have
            // removed it and not come to the sync.
            guard wasThere || !hasNoStamp.load(ordering: .relaxed) else { return true }
            hasNoStamp.store(false, ordering: .relaxed)
            try options.files.synchronizeFolder(folder)
            hasNoStamp.store(true, ordering: .relaxed)
            return true
        } catch { return false }
    }

    /// Says whether the file will be given up as soon as the last transaction has ended.
    func leave(_ isLeaving: Bool = true) { registration.leave(isLeaving) }

    /// Gives the file up, to others in this process and outside it, once LMDB has closed it.
    func release() {
        registration.cancel()
        data.close()
        writer?.close()
        unregistered?.close()
        presence?.leave()
    }
}
