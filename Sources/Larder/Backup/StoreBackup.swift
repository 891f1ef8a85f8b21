import Crypto
package import Foundation
import LarderFiles
import LarderOperations
import LarderRecords

/// A folder that holds a copy of a store: `manifest.json`, `larder.sqlite`, and each partition's cache as
/// `records/<partition>/data.mdb`.
package struct StoreBackup: Sendable {
    package let folder: URL
    package let manifest: BackupManifest

    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: Sendable, Hashable, CaseIterable {
        /// `larder.sqlite` is copied.
        case database
        /// The caches are copied.
        case caches
        /// All is durable, under a name of no meaning.
        case written
        /// It has its name.
        case named
    }

    /// Copies a store into a new folder, while other programs go on using it. Durable on return; whatever fails leaves
    /// nothing, unless it is the sync of the folder in which the backup has its name already.
    ///
    /// `larder.sqlite` is copied first, the caches after it, so that no cache is older than it. What it says was
    /// settled is in the caches then; and an answer that it still holds, to be written into a cache, is either not
    /// there yet or noted there as applied, and not written over newer data. The other way round, an answer could be
    /// settled between the two, and be in neither.
    ///
    /// - Parameter backups: The folder in which the new one is made, named by the time.
    /// - Throws: `.full`, `.notWritable`, `.damaged` of `larder.sqlite`. A cache that cannot be copied for its damage
    ///   is left out, and the manifest says so: it can be fetched again.
    package static func make(
        of store: URL, into backups: URL, options: Store.Options = Store.Options(), now: Date = Date(),
        reached: (KillPoint) throws -> Void = { _ in }
    ) throws -> StoreBackup {
        do {
            let draft = try BackupDraft(in: backups, options.files)
            do {
                let manifest = try write(store, to: draft.folder, options, now, reached)
                let folder = try name(draft.folder, in: backups, now, options.files)
                try reached(.named)
                return withExtendedLifetime(draft) { StoreBackup(folder: folder, manifest: manifest) }
            } catch {
                try? options.files.removeTree(draft.folder.path)
                throw error
            }
        } catch { throw BackupFailure.typed(error) }
    }

    private static func write(
        _ store: URL, to draft: URL, _ options: Store.Options, _ now: Date, _ reached: (KillPoint) throws -> Void
    ) throws -> BackupManifest {
        var manifest = BackupManifest(
            version: BackupManifest.currentVersion, store: nil, created: now, schema: nil, files: [], partitions: [])
        try StoreStatus.withDatabase(of: store, options) { (database) throws(OperationsError) in
            try database.copy(to: draft.appending(path: OperationsDatabase.fileName))
        }
        // Of the copy: the store goes on.
        let owners = try StoreStatus.withDatabase(of: draft, options) { (copy) throws(OperationsError) in
            let schema = try copy.schemaStatus()
            manifest.store = schema.identity
            manifest.schema = schema.applied.last?.number ?? 0
            return try copy.partitionOwners()
        }
        for suffix in ["-wal", "-shm"] {
            let path = draft.appending(path: OperationsDatabase.fileName).path + suffix
            _ = try? options.files.remove(path)
        }
        if owners != nil { manifest.files.append(try file(OperationsDatabase.fileName, in: draft, options.files)) }
        try reached(.database)
        let known = (owners ?? []).map(\.name)
        let folders = try StoreStatus.partitionFolders(of: store, options.files)
        // A cache that is to be removed, and that no partition has any more, was left by a killed program.
        let unknown = try folders.filter { name in
            try !known.contains(name) && !CacheFolder(store: store, partition: name, options).isForgotten()
        }
        for name in known + unknown {
            let environment = owners?.first { $0.name == name }?.environment
            manifest.partitions.append(
                try copyCache(name, environment, of: store, to: draft, options, &manifest.files))
        }
        try reached(.caches)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        let file = draft.appending(path: BackupManifest.fileName)
        try options.files.replace(file.path, with: Array(encoder.encode(manifest)))
        try synchronize(draft, manifest, options.files)
        try reached(.written)
        return manifest
    }

    private static func copyCache(
        _ name: String, _ environment: String?, of store: URL, to draft: URL, _ options: Store.Options,
        _ files: inout [BackupManifest.File]
    ) throws -> BackupManifest.Partition {
        var partition = BackupManifest.Partition(name: name, environment: environment)
        let folder = "records/\(name)"
        let cache = CacheFolder(store: store, partition: name, options)
        do throws(RecordError) {
            let format = try cache.format()
            switch format.state {
            case .absent: return partition
            case .damaged(let reason): throw RecordError(.damaged, reason)
            case .current: partition.format = Int(CacheFormat.current)
            case .older(let version), .newer(let version): partition.format = Int(version)
            }
            try cache.copy(to: draft.appending(path: folder).path)
        } catch {
            try? options.files.removeTree(draft.appending(path: folder).path)
            partition.format = nil
            if error.code == .missing { return partition }
            guard [.damaged, .otherPartition].contains(error.code) else { throw error }
            partition.omitted = error.message
            return partition
        }
        files.append(try file(folder + "/data.mdb", in: draft, options.files))
        partition.cache = folder + "/data.mdb"
        return partition
    }

    private static func file(
        _ path: String, in folder: URL, _ files: FileSystem
    ) throws(FileError) -> BackupManifest.File {
        let (size, sum) = try FileSum.of(folder.appending(path: path), files)
        return BackupManifest.File(path: path, size: size, sha256: sum)
    }

    /// Makes the files survive power loss, with their names and the names of their folders.
    private static func synchronize(
        _ draft: URL, _ manifest: BackupManifest, _ files: FileSystem
    ) throws {
        var folders = [draft.path]
        for path in manifest.files.map(\.path) + [BackupManifest.fileName] {
            let file = draft.appending(path: path)
            try files.synchronize(file.path)
            let folder = file.deletingLastPathComponent().path
            if !folders.contains(folder) { folders.append(folder) }
        }
        if folders.count > 1 { folders.append(draft.appending(path: "records").path) }
        for folder in folders { try files.synchronizeFolder(folder) }
    }

    /// Gives the backup its name: the time, and a number where that is taken.
    private static func name(
        _ draft: URL, in backups: URL, _ now: Date, _ files: FileSystem
    ) throws -> URL {
        let style = Date.ISO8601FormatStyle(
            dateSeparator: .dash, dateTimeSeparator: .standard, timeSeparator: .omitted, timeZoneSeparator: .omitted)
        let time = now.formatted(style)
        for number in 1...10_000 {
            let folder = backups.appending(path: number == 1 ? time : "\(time)-\(number)")
            // `rename` would take the place of an empty folder.
            if try files.exists(folder.path) { continue }
            do throws(FileError) { try files.rename(draft.path, folder.path) } catch {
                // Another backup has taken the name just now.
                guard (try? files.exists(folder.path)) == true else { throw error }
                continue
            }
            try files.synchronizeFolder(backups.path)
            try files.synchronizeFolder(backups.deletingLastPathComponent().path)
            return folder
        }
        throw LarderError(.backup, "There are too many backups of this second in \(backups.path)")
    }
}
