package import Foundation
package import LarderFiles
import LarderOperations
import LarderRecords

extension StoreBackup {
    /// Reads a backup's manifest. Looks at no other file: `verify` does.
    ///
    /// - Throws: `operations.damagedBackup`, `operations.newerFormat`.
    package init(at folder: URL, files: FileSystem = FileSystem()) throws(LarderError) {
        let file = folder.appending(path: BackupManifest.fileName)
        var data = Data()
        do throws(FileError) { try files.read(file.path) { data += $0 } } catch {
            guard error.code == .missing else { throw BackupFailure.typed(error) }
            throw .damagedBackup("\(folder.path) has no \(BackupManifest.fileName); is it a backup?")
        }
        struct Version: Decodable {
            var version: Int
            enum CodingKeys: String, CodingKey { case version = "larder-backup" }
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        guard let version = try? decoder.decode(Version.self, from: data).version else {
            throw .damagedBackup("\(file.path) is no manifest of a backup")
        }
        guard version <= BackupManifest.currentVersion else {
            throw LarderError(
                OperationsError(
                    .newerFormat,
                    "A newer program made the backup (format \(version), known are those to "
                        + "\(BackupManifest.currentVersion)); update the program"))
        }
        do { manifest = try decoder.decode(BackupManifest.self, from: data) } catch {
            throw .damagedBackup("\(file.path) cannot be understood: \(error)")
        }
        self.folder = folder
        try requirePlainNames()
    }

    /// A manifest names files of its own folder, and partitions by names that lead nowhere else.
    private func requirePlainNames() throws(LarderError) {
        var paths = manifest.schema == nil ? [] : [OperationsDatabase.fileName]
        for partition in manifest.partitions {
            let name = partition.name
            guard StoreStatus.isPartitionName(name) else {
                throw .damagedBackup("The manifest names the partition \(name), which is no name")
            }
            guard let cache = partition.cache else { continue }
            guard cache == "records/\(name)/data.mdb" else {
                throw .damagedBackup("The manifest has the cache of \(name) at \(cache)")
            }
            paths.append(cache)
        }
        guard manifest.files.map(\.path).sorted() == paths.sorted() else {
            throw .damagedBackup("The manifest's files are not those of its partitions")
        }
        var total = 0
        for file in manifest.files {
            let (sum, isTooLarge) = total.addingReportingOverflow(file.size)
            guard file.size >= 0, !isTooLarge else {
                throw .damagedBackup("The manifest gives \(file.path) a size that no file has")
            }
            total = sum
        }
    }

    /// Compares every file with what the manifest says of it.
    ///
    /// - Throws: `operations.damagedBackup`, with the file; `.backup` where the disk fails, `operations.notWritable`.
    package func verify(files: FileSystem = FileSystem()) throws(LarderError) {
        for file in manifest.files {
            let found: (size: Int, sum: String)
            do throws(FileError) { found = try FileSum.of(folder.appending(path: file.path), files) } catch {
                guard error.code == .missing else { throw BackupFailure.typed(error) }
                throw .damagedBackup("\(file.path) of the backup is not there")
            }
            try require(file, found)
        }
    }

    /// Copies one of the backup's files, and compares the copy with the manifest.
    func copy(_ path: String, to target: String, _ files: FileSystem) throws {
        guard let file = manifest.file(path) else { throw LarderError.damagedBackup("The backup has no \(path)") }
        try require(file, try FileSum.copy(folder.appending(path: path), to: target, files))
    }

    private func require(_ file: BackupManifest.File, _ found: (size: Int, sum: String)) throws(LarderError) {
        guard found.size == file.size, found.sum == file.sha256 else {
            throw .damagedBackup(
                "\(file.path) of the backup is not what was written: \(found.size) bytes with SHA-256 \(found.sum), "
                    + "the manifest says \(file.size) with \(file.sha256); use another backup")
        }
    }
}

extension LarderError {
    fileprivate static func damagedBackup(_ message: String) -> LarderError {
        LarderError(OperationsError(.damagedBackup, message))
    }
}
