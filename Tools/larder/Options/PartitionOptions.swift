import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

/// Which of the store's partitions is meant: one for each environment and user.
struct PartitionOptions: ParsableArguments {
    @Option(
        name: .customLong("partition"),
        help: ArgumentHelp(
            "The partition, by its own name, as env lists them. Default: the environment variable LARDER_PARTITION, "
                + "then the current partition.",
            valueName: "name"))
    var name: String?

    /// The name that was said, if any was.
    ///
    /// - Throws: For what would lead out of the store's folder.
    func said() throws(Failure) -> String? {
        guard let name = name ?? ProcessInfo.processInfo.environment["LARDER_PARTITION"], !name.isEmpty else {
            return nil
        }
        guard
            name.utf8.allSatisfy({
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
            })
        else { throw Failure(usage: "A partition's name has small letters and digits alone; env lists them") }
        return name
    }
}

extension StoreOptions {
    /// The folder, whatever partitions are in it.
    func folder() throws(Failure) -> StoreFolder { try StoreFolder(url: url(), partition: Store.unnamedPartition) }

    /// The folder, and the partition that is meant.
    func folder(_ options: PartitionOptions) throws(Failure) -> StoreFolder {
        let url = try url()
        if let said = try options.said() { return try StoreFolder(url: url, partition: said, isChosen: true) }
        let (partition, unread) = try StoreFolder.currentPartition(of: url)
        return try StoreFolder(url: url, partition: partition, unread: unread)
    }
}

extension StoreFolder {
    /// The current partition's name, or that of a program that names no environment where none was ever chosen; and
    /// why it could not be read, where it is that name for want of a better one.
    fileprivate static func currentPartition(of url: URL) throws(Failure) -> (name: String, unread: OperationsError?) {
        let (unnamed, files) = (Store.unnamedPartition, FileSystem())
        let isThere = try look(at: url.appending(path: OperationsDatabase.fileName).path, files) != nil
        let current: CurrentPartition?
        do throws(OperationsError) {
            if !isThere, try !wasThere(url, files) { return (unnamed, nil) }
            var options = OperationsDatabase.Options()
            options.isReadOnly = true
            let database = try OperationsDatabase(folder: url, options: options)
            defer { try? database.close() }
            current = try database.environments.current()
        } catch {
            // One that knows of no environments, or can tell nothing any more: the cache may be read all the same.
            let cache = Store.cacheFolder(of: url).path
            guard error.code == .pending || (try? look(at: cache, files)) ?? nil != nil else { throw Failure(error) }
            return (unnamed, error)
        }
        guard let current else { return (unnamed, nil) }
        guard let partition = current.partition else {
            throw Failure(
                LarderError(
                    .noEnvironment, "No environment is chosen; name a partition by --partition, as env lists them"))
        }
        return (partition.name, nil)
    }

    /// Whether there was a database of which the log is left: opening it says so.
    ///
    /// - Throws: `.missing` where the store has caches of which only a database knew.
    private static func wasThere(_ url: URL, _ files: FileSystem) throws(OperationsError) -> Bool {
        if try OperationsDatabase.isLost(in: url, files) { return true }
        let partitions = (try? StoreStatus.partitionFolders(of: url, files)) ?? []
        guard partitions.allSatisfy({ $0 == Store.unnamedPartition }) else {
            let file = url.appending(path: OperationsDatabase.fileName).path
            throw OperationsError(
                .missing, "\(file) is not there, and the store has caches of several partitions; restore a backup")
        }
        return false
    }
}
