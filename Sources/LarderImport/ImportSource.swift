package import Larder
package import LarderFiles
import LarderGraphQL
import LarderRecords

/// Another library's files, from which a store takes over what it can.
///
/// The files are never changed. What the store knows already stays as it is: it is newer. Taking the same twice takes
/// nothing the second time. What cannot be decided is not guessed but counted, with its reason.
package struct ImportSource {
    let format: ImportFormat
    /// A database; of AppSync also the folder with its databases.
    let path: String
    let options: ImportOptions
    let schema: SchemaIndex
    private let files: FileSystem

    /// - Parameter schema: The store's.
    /// - Throws: `.store` where the schema cannot be used.
    package init(
        _ format: ImportFormat, path: String, schema: Schema, options: ImportOptions = ImportOptions(),
        _ files: FileSystem = FileSystem()
    ) throws(ImportError) {
        self.files = files
        self.format = format
        self.path = path
        self.options = options
        do { self.schema = try SchemaIndex(serialized: schema.compiled) } catch {
            throw ImportError(.store, "The schema cannot be used: \(error)")
        }
    }

    /// What could be taken by a store that knows nothing.
    ///
    /// - Throws: `.missing`, `.foreign`, `.damaged`, `.busy`, `.tooLarge`, `.unreadable`, `.ambiguous`.
    package func inspect() async throws(ImportError) -> ImportReport { try await run(into: nil, isDryRun: true) }

    /// Takes over what can be taken.
    ///
    /// Objects and fields are written each in a transaction of its own, or a few together: after a failure those before
    /// it are there, and running again takes the rest.
    ///
    /// - Parameter isDryRun: Writes nothing, and tells what would be. Objects of which only the key is known may be
    ///   counted as taken then, and as present when they are taken: with a reference to them, which was stored before.
    /// - Throws: As `inspect`; `.store` where the store fails.
    package func run(into partition: Partition, isDryRun: Bool = false) async throws(ImportError) -> ImportReport {
        try await run(into: Optional(partition), isDryRun: isDryRun)
    }

    private func run(into partition: Partition?, isDryRun: Bool) async throws(ImportError) -> ImportReport {
        var report = ImportReport(format: format, isDryRun: isDryRun)
        var limits = ForeignDatabase.Options()
        limits.files = files
        limits.maximumSize = options.maximumFileSize
        limits.maximumValueSize = options.maximumRecordSize
        let files =
            switch format {
            case .apollo: AppSyncFiles(records: path)
            case .appSync: try AppSyncFiles(path, prefix: options.prefix, limits)
            }
        if let file = files.records {
            let cache = try SourceCache(file, limits)
            let writer = StoreWriter(partition?.records, schema, isDryRun: isDryRun)
            let run = CacheImport(cache: cache, schema: schema, style: format.keyStyle, writer: writer)
            try await run.run(&report)
            try cache.database.requireUnchanged()
        }
        if let file = files.mutations {
            let mutations = try AppSyncMutations(file, limits)
            try await mutations.take(options, into: partition, schema, &report)
            try mutations.database.requireUnchanged()
        }
        if let file = files.subscriptions {
            let database = try ForeignDatabase(file, limits)
            report.subscriptions = try database.count(of: "subscription_metadata")
            try database.requireUnchanged()
        }
        report.files = Set([files.records, files.mutations, files.subscriptions].compactMap { $0 }).sorted()
        return report
    }
}

extension ImportFormat {
    fileprivate var keyStyle: KeyStyle {
        switch self {
        case .appSync: .appSync
        case .apollo: .apollo
        }
    }
}

/// How a source is read, and what is taken of it.
package struct ImportOptions: Sendable, Hashable {
    /// Whether queued mutations are taken. They are then sent by this store: the other program must not send them too.
    package var takesMutations = false
    /// Of an AppSync client with a prefix of its own, without the `_` after it.
    package var prefix: String?
    /// The greatest size of a database in bytes.
    package var maximumFileSize: Int64 = 8 << 30
    /// The greatest size of a cached record in bytes; a queued mutation may be larger.
    package var maximumRecordSize: Int64 = 64 << 20

    package init() {}
}
