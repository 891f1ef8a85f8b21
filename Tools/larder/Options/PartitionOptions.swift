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
            "The partition, by its own name, as env lists them. Default: the environment variable LARDER_PARTITION, then the "
                + "current partition.",
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
        return try StoreFolder(url: url, partition: StoreFolder.currentPartition(of: url))
    }
}

extension StoreFolder {
    /// The current partition's name; that of a program that names no environment where none was ever chosen.
    fileprivate static func currentPartition(of url: URL) throws(Failure) -> String {
        let file = url.appending(path: OperationsDatabase.fileName)
        guard try look(at: file.path, FileSystem()) != nil else { return Store.unnamedPartition }
        let current: CurrentPartition?
        do throws(OperationsError) {
            var options = OperationsDatabase.Options()
            options.isReadOnly = true
            let database = try OperationsDatabase(folder: url, options: options)
            defer { try? database.close() }
            current = try database.environments.current()
        } catch {
            // One that knows of no environments, or can tell nothing any more: the cache may be read all the same.
            let unnamed = Store.cacheFolder(of: url).path
            guard error.code == .pending || (try? look(at: unnamed, FileSystem())) ?? nil != nil else {
                throw Failure(error)
            }
            return Store.unnamedPartition
        }
        guard let current else { return Store.unnamedPartition }
        guard let partition = current.partition else {
            throw Failure(
                LarderError(
                    .noEnvironment, "No environment is chosen; name a partition by --partition, as env lists them"))
        }
        return partition.name
    }
}
