import LarderFiles

/// The databases of one AppSync client: three in newer versions of its SDK, named `queries.db`, `offlineMutations.db`
/// and `subscriptionMetadataCache.db` after a prefix of the client's; one with all tables, of any name, in older ones.
struct AppSyncFiles {
    var records: String?
    var mutations: String?
    var subscriptions: String?
}

extension AppSyncFiles {
    /// - Parameters:
    ///   - path: A folder, or a database.
    ///   - prefix: Of the client, without the `_` that follows it, where a folder has several.
    /// - Throws: `.missing`, `.foreign`, `.ambiguous` and what opening the databases throws.
    init(_ path: String, prefix: String?, _ options: ForeignDatabase.Options) throws(ImportError) {
        let found: FileStatus?
        do throws(FileError) { found = try options.files.status(of: path) } catch { throw .unreadable(path, error) }
        guard let found else {
            throw ImportError(.missing, "There is no \(path); give the folder with AppSync's databases")
        }
        let candidates = found.kind == .folder ? try Self.databases(in: path, prefix: prefix, options.files) : [path]
        for candidate in candidates {
            let tables = try ForeignDatabase(candidate, options).tables()
            try note(candidate, in: \.records, if: tables.contains("records"))
            try note(candidate, in: \.mutations, if: tables.contains("mutation_records"))
            try note(candidate, in: \.subscriptions, if: tables.contains("subscription_metadata"))
        }
        guard records != nil || mutations != nil || subscriptions != nil else {
            throw ImportError(
                .foreign, "\(path) has none of AppSync's tables: records, mutation_records, subscription_metadata")
        }
    }

    private mutating func note(
        _ path: String, in place: WritableKeyPath<AppSyncFiles, String?>, if hasTable: Bool
    ) throws(ImportError) {
        guard hasTable else { return }
        if let other = self[keyPath: place] {
            throw ImportError(
                .ambiguous, "\(other) and \(path) have the same tables; name the client's prefix, or give one file")
        }
        self[keyPath: place] = path
    }

    private static func databases(
        in folder: String, prefix: String?, _ files: FileSystem
    ) throws(ImportError) -> [String] {
        let names: [String]
        do throws(FileError) { names = try files.names(in: folder) } catch { throw .unreadable(folder, error) }
        var found: [String] = []
        for name in names {
            if let prefix {
                guard name.hasPrefix("\(prefix)_"), !name.dropFirst(prefix.count + 1).contains("_") else { continue }
            }
            let file = ForeignFile(path: "\(folder)/\(name)", files: files)
            // Folders, pipes and what may not be read belong to other programs.
            guard let status = try? file.status(), status.size > 0, (try? isDatabase(file)) == true else { continue }
            found.append(file.path)
        }
        guard !found.isEmpty else {
            let which = prefix.map { " whose name begins with \($0)_" } ?? ""
            throw ImportError(.foreign, "\(folder) has no SQLite database\(which)")
        }
        return found
    }

    private static func isDatabase(_ file: ForeignFile) throws(ImportError) -> Bool {
        try ForeignDatabase.isDatabase(file)
    }
}
