package import Foundation
package import LarderFiles
import LarderOperations
import Logging

/// Files and folders of a store that other users than their owner may read, change or enter.
///
/// What this version makes is its user's alone from the first moment; older versions left that to the mask of the
/// process.
package struct StoreExposure: Sendable {
    package struct Item: Sendable, Hashable {
        /// From the store's folder on; `.` is the folder itself.
        package var path: String
        /// The permissions, such as 0o644.
        package var mode: Int
    }

    package let folder: URL
    private let files: FileSystem
    /// A folder comes before its contents.
    package private(set) var items: [Item] = []
    /// Items of which the rights of others could not be taken: they are another user's, or the volume knows no such
    /// rights.
    package private(set) var left: [Item] = []

    /// Looks at what the store has made, and at nothing else that may lie in its folder. Links are not followed.
    package init(of folder: URL, _ files: FileSystem = FileSystem()) {
        self.init(of: folder, isNarrowing: false, files)
    }

    /// Takes the rights of others from everything that the store has made.
    package static func narrow(_ folder: URL, _ files: FileSystem = FileSystem()) -> StoreExposure {
        StoreExposure(of: folder, isNarrowing: true, files)
    }

    private init(of folder: URL, isNarrowing: Bool, _ files: FileSystem) {
        self.folder = folder
        self.files = files
        let names = names(in: folder)
        // An empty folder is about to become a store. Nothing in it was exposed yet, so that nothing is told.
        if names.isEmpty, isNarrowing {
            look(at: ".", isNarrowing)
            items = left
        }
        guard names.contains("records") || names.contains(OperationsDatabase.fileName) else { return }
        // A folder that holds something else too is its program's.
        if names.allSatisfy(StoreContents.isOwn) { look(at: ".", isNarrowing) }
        for name in names where StoreContents.isMade(name) { walk(name, isNarrowing) }
    }

    private func names(in folder: URL) -> [String] { (try? files.names(in: folder.path)) ?? [] }

    private mutating func walk(_ path: String, _ isNarrowing: Bool) {
        guard look(at: path, isNarrowing) else { return }
        for name in names(in: folder.appending(path: path)) { walk("\(path)/\(name)", isNarrowing) }
    }

    /// Looks at one of them. A folder is narrowed before anything in it is looked at, so that no other user can put a
    /// link there meanwhile.
    ///
    /// - Returns: Whether it is a folder.
    @discardableResult
    private mutating func look(at path: String, _ isNarrowing: Bool) -> Bool {
        let isTop = path == "."
        let place = isTop ? folder.path : folder.appending(path: path).path
        // The folder itself may be named by a link.
        guard let status = (try? files.status(of: place, followingLinks: isTop)) ?? nil,
            [.folder, .file].contains(status.kind)
        else { return false }
        if status.mode & 0o077 != 0 {
            let item = Item(path: path, mode: Int(status.mode & 0o777))
            items.append(item)
            if isNarrowing, !narrow(place, to: status.mode & 0o7700) { left.append(item) }
        }
        return status.kind == .folder
    }

    /// By its name: closing a descriptor would give up the locks that this process has on the file.
    private func narrow(_ path: String, to mode: UInt16) -> Bool {
        guard (try? files.setMode(mode, of: path)) != nil, let status = (try? files.status(of: path)) ?? nil else {
            return false
        }
        return status.mode & 0o077 == 0
    }

    // MARK: Telling

    /// For a store that is only read; nil where nothing is exposed.
    package var finding: String? {
        items.isEmpty ? nil : "Other users may use \(Self.list(items)) of the store \(folder.path). \(advice)"
    }

    /// For one that was narrowed; nil where there was nothing to be done.
    package var change: String? {
        guard !items.isEmpty else { return nil }
        guard left.isEmpty else {
            return
                "Other users may use \(Self.list(left)) of the store \(folder.path), and this user cannot change that. "
                + "Let its owner run: chmod -R go= PATH, with the store's path."
        }
        return "Other users could use \(Self.list(items)) of the store \(folder.path). Now they cannot."
    }

    private var advice: String {
        "Opening it for writing makes it this user's alone; so does: chmod -R go= PATH, with the store's path."
    }

    private static func list(_ items: [Item]) -> String {
        let shown = items.prefix(3).map { "\($0.path) (\(String($0.mode, radix: 8)))" }.joined(separator: ", ")
        return items.count > 3 ? "\(shown) and \(items.count - 3) more" : shown
    }

    /// Sees to it when a store is opened.
    static func notice(in folder: URL, _ options: Store.Options) {
        let exposure = options.isReadOnly ? StoreExposure(of: folder, options.files) : narrow(folder, options.files)
        guard let text = options.isReadOnly ? exposure.finding : exposure.change else { return }
        options.logger.warning("\(text)")
    }
}
