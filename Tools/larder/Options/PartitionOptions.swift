import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

/// Which of the store's partitions is meant: one for each environment and user.
struct PartitionOptions: ParsableArguments {
    /// What a partition is named by.
    enum Choice {
        case partition(String)
        /// The partition of this environment that was in use last.
        case environment(String)
    }

    @Option(
        name: .customLong("partition"),
        help: ArgumentHelp(
            "The partition, by its own name, as env lists them. Default: --env, then the environment variables "
                + "LARDER_PARTITION and LARDER_ENV, then the current partition.",
            valueName: "name"))
    var name: String?
    @Option(
        name: .customLong("env"),
        help: ArgumentHelp(
            "The environment: its current partition, or the one that was in use last.", valueName: "name"))
    var environment: String?

    func validate() throws {
        guard name == nil || environment == nil else { throw ValidationError("Give either --partition or --env.") }
    }

    /// What was said, if anything was: an option counts for more than a variable, and a partition for more than an
    /// environment.
    ///
    /// - Throws: For what would lead out of the store's folder.
    func said() throws(Failure) -> Choice? {
        if let name { return .partition(try Self.checked(name)) }
        if let environment { return .environment(environment) }
        return try Self.saidByVariables()
    }

    /// What the environment variables say, if they say anything.
    static func saidByVariables() throws(Failure) -> Choice? {
        let variables = ProcessInfo.processInfo.environment
        func value(_ variable: String) -> String? { variables[variable].flatMap { $0.isEmpty ? nil : $0 } }
        if let name = value("LARDER_PARTITION") { return .partition(try checked(name)) }
        return value(StoreOptions.environmentVariable).map(Choice.environment)
    }

    private static func checked(_ name: String) throws(Failure) -> String {
        guard
            !name.isEmpty,
            name.utf8.allSatisfy({
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
            })
        else { throw Failure(usage: "A partition's name has small letters and digits alone; env lists them") }
        return name
    }

    /// The partitions of which rows are meant; nil for all of them.
    func rows(_ table: EnvironmentTable) throws -> [StoredPartition]? {
        switch try said() {
        case nil: return nil
        case .partition(let name):
            return try table.partitions().filter { $0.name == name }
        case .environment(let name):
            return try table.partitions().filter { $0.environment == name }
        }
    }
}

extension Failure {
    fileprivate static func unknownEnvironment(_ name: String) -> Failure {
        Failure(
            OperationsError(
                .unknownEnvironment,
                "The store knows no environment \(name); larder env lists the ones that it knows"))
    }

    fileprivate static func unknownPartition(_ name: String) -> Failure {
        Failure(
            OperationsError(
                .unknownPartition,
                "The store knows no partition \(name), and no verb makes one by its name; larder env lists the ones "
                    + "that it knows"))
    }
}

extension StoreOptions {
    /// The folder, for a verb that works on all of the store, or on rows by their ids. What the environment variables
    /// name must be known all the same.
    func folder() throws(Failure) -> StoreFolder { try wholeFolder(PartitionOptions.saidByVariables()) }

    /// The folder, for a verb that works on the rows of all partitions, or of the named ones.
    func folder(rowsOf options: PartitionOptions) throws(Failure) -> StoreFolder { try wholeFolder(options.said()) }

    private func wholeFolder(_ choice: PartitionOptions.Choice?) throws(Failure) -> StoreFolder {
        let url = try url()
        try StoreFolder.require(choice, in: url)
        return try StoreFolder(url: url, partition: Store.unnamedPartition)
    }

    /// The folder, for the verb that lists what can be named. What the environment variables name and the store does
    /// not know is told, and nothing else.
    func folderOfAll(_ output: Output) throws(Failure) -> StoreFolder {
        let url = try url()
        do throws(Failure) { try StoreFolder.require(PartitionOptions.saidByVariables(), in: url) } catch {
            if error.exit == .miss { output.warn(error) }
        }
        return try StoreFolder(url: url, partition: Store.unnamedPartition)
    }

    /// The folder, and the partition that is meant.
    func folder(_ options: PartitionOptions) throws(Failure) -> StoreFolder {
        let (url, choice) = (try url(), try options.said())
        try StoreFolder.require(choice, in: url)
        switch choice {
        case .partition(let name): return try StoreFolder(url: url, partition: name, isChosen: true)
        case .environment(let name):
            let (partition, isCurrent) = try StoreFolder.partition(ofEnvironment: name, in: url)
            return try StoreFolder(url: url, partition: partition, isChosen: !isCurrent)
        case nil:
            let (partition, unread) = try StoreFolder.currentPartition(of: url)
            return try StoreFolder(url: url, partition: partition, unread: unread)
        }
    }
}

extension StoreFolder {
    /// The partition of an environment that was in use last, and whether it is the current one.
    fileprivate static func partition(
        ofEnvironment name: String, in url: URL
    ) throws(Failure) -> (name: String, isCurrent: Bool) {
        let found = try withEnvironments(of: url) { table in
            guard let partition = try table.partition(of: name, .last) else {
                throw Failure(
                    OperationsError(.unknownPartition, "The environment \(name) has no partition: nothing used it yet"))
            }
            return (partition.name, try table.current()?.partition?.name == partition.name)
        }
        guard let found else { throw .unknownEnvironment(name) }
        return found
    }

    /// Refuses what the store does not know: a name that was mistyped would otherwise be a new, empty partition, to
    /// which no environment belongs and whose mutations nothing ever sends.
    fileprivate static func require(_ choice: PartitionOptions.Choice?, in url: URL) throws(Failure) {
        switch choice {
        case nil: return
        case .partition(let name):
            // Every store has that of a program which names no environment, used or not; a cache is one in any case.
            guard name != Store.unnamedPartition,
                try look(at: Store.cacheFolder(of: url, partition: name).path, FileSystem()) == nil
            else { return }
            let isKnown = try withEnvironments(of: url) { try $0.partition(name) != nil }
            guard isKnown == true else { throw .unknownPartition(name) }
        case .environment(let name):
            let isKnown = try withEnvironments(of: url) { try $0.find(name) != nil }
            guard isKnown == true else { throw .unknownEnvironment(name) }
        }
    }

    /// Runs `body` with what the store knows of environments, for reading; nil where it has no database.
    private static func withEnvironments<Result>(
        of url: URL, _ body: (EnvironmentTable) throws -> Result
    ) throws(Failure) -> Result? {
        guard try look(at: url.path, FileSystem()) != nil else {
            throw Failure(.noStore, .failure, "There is no store at \(url.path)")
        }
        return try Failure.typed {
            guard try OperationsDatabase.exists(in: url, FileSystem()) else { return nil }
            var options = OperationsDatabase.Options()
            options.isReadOnly = true
            let database = try OperationsDatabase(folder: url, options: options)
            defer { try? database.close() }
            return try body(database.environments)
        }
    }

    /// The current partition's name, or that of a program that names no environment where none was ever chosen; and
    /// why it could not be read, where it is that name for want of a better one.
    fileprivate static func currentPartition(of url: URL) throws(Failure) -> (name: String, unread: OperationsError?) {
        let (unnamed, files) = (Store.unnamedPartition, FileSystem())
        let current: CurrentPartition?
        do throws(OperationsError) {
            guard try OperationsDatabase.exists(in: url, files) else {
                try requireUnnamed(url, files)
                return (unnamed, nil)
            }
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

    /// - Throws: `.missing` where the store has caches of which only a database knew.
    private static func requireUnnamed(_ url: URL, _ files: FileSystem) throws(OperationsError) {
        let partitions = (try? StoreStatus.partitionFolders(of: url, files)) ?? []
        guard partitions.allSatisfy({ $0 == Store.unnamedPartition }) else {
            let file = url.appending(path: OperationsDatabase.fileName).path
            throw OperationsError(
                .missing, "\(file) is not there, and the store has caches of several partitions; restore a backup")
        }
    }
}
