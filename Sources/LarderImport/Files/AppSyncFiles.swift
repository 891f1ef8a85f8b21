import Foundation

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
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw ImportError(.missing, "there is no \(path); give the folder with AppSync's databases")
        }
        let candidates = isFolder.boolValue ? try Self.databases(in: path, prefix: prefix) : [path]
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

    private static func databases(in folder: String, prefix: String?) throws(ImportError) -> [String] {
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted() } catch {
            throw ImportError(.unreadable, "\(folder) cannot be read; see who may read it")
        }
        var found: [String] = []
        for name in names {
            if let prefix {
                guard name.hasPrefix("\(prefix)_"), !name.dropFirst(prefix.count + 1).contains("_") else { continue }
            }
            let file = ForeignFile(path: "\(folder)/\(name)")
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
