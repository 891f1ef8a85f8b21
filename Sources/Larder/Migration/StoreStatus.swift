package import Foundation
package import LarderFiles
package import LarderOperations
package import LarderRecords

/// What a store is made of, and in which formats: read without changing anything.
package struct StoreStatus: Sendable {
    package struct Cache: Sendable {
        /// The partition's name, which is the folder's.
        package var partition: String
        package var format: CacheFormat
        /// Whether an older format can be transformed; otherwise the cache is rebuilt.
        package var isTransformed: Bool
    }

    package var folder: URL
    /// Nil where the store has no `larder.sqlite`: nothing was ever to be kept.
    package var schema: SchemaStatus?
    /// In the order of their names.
    package var caches: [Cache]

    /// Looks at a store. Opens everything for reading only.
    ///
    /// - Throws: `operations.newerFormat`, `operations.migrationChanged`, `operations.migrationMissing`,
    ///   `operations.damaged` and what else keeps the database from being read.
    package init(of folder: URL, options: Store.Options = Store.Options()) throws(LarderError) {
        self.folder = folder
        do throws(OperationsError) {
            schema = try Self.withDatabase(of: folder, options) { (database) throws(OperationsError) in
                try database.schemaStatus()
            }
        } catch { throw LarderError(error) }
        caches = try Self.caches(of: folder, options: options)
    }

    /// The caches alone.
    package static func caches(
        of folder: URL, options: Store.Options = Store.Options()
    ) throws(LarderError) -> [Cache] {
        var caches: [Cache] = []
        let partitions: [String]
        do throws(FileError) { partitions = try partitionFolders(of: folder, options.files) } catch {
            throw LarderError(RecordError.translated(error))
        }
        for partition in partitions {
            let cache = CacheFolder(store: folder, partition: partition, options)
            do throws(RecordError) {
                let format = try cache.format()
                guard format.state != .absent else { continue }
                var isTransformed = false
                if case .older(let from) = format.state { isTransformed = cache.isTransformed(from: from) }
                caches.append(Cache(partition: partition, format: format, isTransformed: isTransformed))
            } catch { throw LarderError(error) }
        }
        return caches
    }

    /// Runs `body` with the database as it is, for reading only; nil where there is none, or nothing is left of it but
    /// its log.
    static func withDatabase<Result>(
        of folder: URL, _ options: Store.Options,
        _ body: (OperationsDatabase) throws(OperationsError) -> Result
    ) throws(OperationsError) -> Result? {
        guard try OperationsDatabase.exists(in: folder, options.files),
            try !OperationsDatabase.isLost(in: folder, options.files)
        else { return nil }
        var options = options.operations
        options.isReadOnly = true
        options.schema = .asItIs
        let database = try OperationsDatabase(folder: folder, options: options)
        defer { try? database.close() }
        return try body(database)
    }

    /// The names of all partitions that have a folder for their cache.
    package static func partitionFolders(of folder: URL, _ files: FileSystem) throws(FileError) -> [String] {
        try files.names(in: folder.appending(path: "records").path).filter(isPartitionName)
    }

    /// Whether a partition may have this name. Anything else among the caches belongs to no partition.
    package static func isPartitionName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

extension CacheFolder {
    /// The record cache of a store's partition.
    package init(store folder: URL, partition: String, _ options: Store.Options) {
        self.init(
            path: folder.appending(path: "records/\(partition)").path, stamp: partition,
            options: options.records(of: folder))
    }
}
