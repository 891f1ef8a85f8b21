import Foundation
import LarderTestSupport

/// A disk to which a recording is played back, and from which the power can be cut at any time.
struct Disk {
    private struct Object {
        var isFolder: Bool
        /// The number by which the recording knows it.
        var inode: UInt64
        var contents = FileContents()
        /// How many entries had been played when it was made.
        var born: Int
        /// How many entries had been played when it was last synced with its times.
        var lastSynced = 0
    }

    struct Unplayable: Error { let reason: String }

    private let root: String
    private var objects: [Object] = []
    /// The object that bears a number now; numbers are used again.
    private var byInode: [UInt64: Int] = [:]
    private var names: [FolderNames]
    private var live: FolderNames.Entries = [:]
    private var played = 0
    /// What was mapped for writing, by its name then.
    private(set) var mapped: Set<String> = []

    /// Whether syncs of a file are lost on their way to the disk.
    private let isUnsynced: @Sendable (String) -> Bool

    init(root: String, isUnsynced: @escaping @Sendable (String) -> Bool = { _ in false }) {
        self.root = root
        self.isUnsynced = isUnsynced
        names = PowerCut.Order.allCases.map(FolderNames.init)
    }

    // MARK: Playing

    mutating func play(_ entry: RecordedEntry) throws {
        played += 1
        switch entry {
        case .root(let inode):
            if objects.isEmpty { _ = add(inode, isFolder: true) }
        case .create(let path, let inode): try name(path, add(inode, isFolder: false))
        case .makeFolder(let path, let inode): try name(path, add(inode, isFolder: true))
        case .write(let inode, let offset, let bytes, let isSynced):
            let file = try object(inode)
            objects[file].contents.write(bytes, at: offset, isSynced: isSynced)
            if isSynced { synchronizeName(of: file) }
        case .resize(let inode, let size): objects[try object(inode)].contents.resize(to: size)
        case .allocate(let inode, let end): objects[try object(inode)].contents.allocate(to: end)
        case .rename(let from, let to):
            let (source, target) = (try place(from), try place(to))
            guard let object = live[source.folder]?[source.name] else { throw Unplayable(reason: "no \(from)") }
            change(.init(removed: [source], added: (target.folder, target.name, object)))
        case .link(let from, let to):
            let (source, target) = (try place(from), try place(to))
            guard let object = live[source.folder]?[source.name] else { throw Unplayable(reason: "no \(from)") }
            change(.init(added: (target.folder, target.name, object)))
        case .remove(let path): change(.init(removed: [try place(path)]))
        case .sync(let inode, let dataOnly):
            let object = try object(inode)
            if let path = path(of: object), isUnsynced(path) { break }
            synchronize(object, dataOnly: dataOnly)
        // The names in a folder are the journal's, which a failed sync does not take them from.
        case .failedSync(let inode): objects[try object(inode)].contents.failToSynchronize()
        case .mapped(let inode): mapped.insert(path(of: try object(inode)) ?? "?")
        case .mark: break
        }
    }

    private mutating func add(_ inode: UInt64, isFolder: Bool) -> Int {
        byInode[inode] = objects.count
        objects.append(Object(isFolder: isFolder, inode: inode, born: played))
        if isFolder { live[objects.count - 1] = [:] }
        return objects.count - 1
    }

    private mutating func name(_ path: String, _ object: Int) throws {
        let (folder, name) = try place(path)
        change(.init(added: (folder, name, object)))
    }

    private mutating func change(_ change: FolderNames.Change) {
        for (folder, name) in change.removed { live[folder]?[name] = nil }
        if let (folder, name, object) = change.added { live[folder]?[name] = object }
        for index in names.indices { names[index].note(change) }
    }

    private mutating func synchronize(_ object: Int, dataOnly: Bool) {
        if objects[object].isFolder {
            for index in names.indices { names[index].synchronize(folder: object, ancestors: ancestors(of: object)) }
        } else {
            objects[object].contents.synchronize()
            if !dataOnly { objects[object].lastSynced = played }
            synchronizeName(of: object)
        }
    }

    private mutating func synchronizeName(of file: Int) {
        for index in names.indices { names[index].synchronize(file: file, ancestors: ancestors(of: file)) }
    }

    private func object(_ inode: UInt64) throws -> Int {
        guard let object = byInode[inode] else { throw Unplayable(reason: "nothing bears the number \(inode)") }
        return object
    }

    private func place(_ path: String) throws -> (folder: Int, name: String) {
        guard path.hasPrefix(root + "/") else { throw Unplayable(reason: "\(path) is outside") }
        var parts = path.dropFirst(root.count + 1).split(separator: "/").map(String.init)
        guard let name = parts.popLast() else { throw Unplayable(reason: "\(path) is the folder itself") }
        var folder = 0
        for part in parts {
            guard let next = live[folder]?[part] else { throw Unplayable(reason: "there is no \(path)") }
            folder = next
        }
        return (folder, name)
    }

    /// The folders above, up to the root, and the folder itself.
    private func ancestors(of object: Int) -> Set<Int> {
        var found: Set<Int> = objects[object].isFolder ? [object] : []
        var next = object
        while let parent = live.first(where: { $0.value.values.contains(next) })?.key, found.insert(parent).inserted {
            next = parent
        }
        return found
    }

    private func path(of object: Int) -> String? {
        guard object != 0 else { return "" }
        for (folder, entries) in live {
            guard let name = entries.first(where: { $0.value == object })?.key else { continue }
            return path(of: folder).map { "\($0)/\(name)" }
        }
        return nil
    }

    // MARK: Cutting

    /// The files and folders that a power cut leaves now, by their paths from the root, folders before what is in them.
    func left(by cut: PowerCut) -> RemainingFiles {
        var random = SeededNumbers(seed: cut.seed)
        let names = names.first { $0.order == cut.order } ?? FolderNames(order: cut.order)
        let entries =
            switch cut.names {
            case .lost: names.durable
            case .kept: names.all
            case .torn: names.torn(by: &random)
            }
        var remaining = RemainingFiles()
        collect(0, "", entries, &remaining) { $0.left(cut.contents, by: &random) }
        return remaining
    }

    /// The files and folders as programs see them now.
    func seen() -> RemainingFiles {
        var remaining = RemainingFiles()
        collect(0, "", live, &remaining) { $0.seen }
        return remaining
    }

    private func collect(
        _ folder: Int, _ path: String, _ entries: FolderNames.Entries, _ remaining: inout RemainingFiles,
        _ bytes: (FileContents) -> Data
    ) {
        let children = (entries[folder] ?? [:]).sorted { $0.key < $1.key }
        for (name, object) in children {
            if objects[object].isFolder {
                remaining.folders.append("\(path)/\(name)")
                collect(object, "\(path)/\(name)", entries, &remaining, bytes)
                continue
            }
            // One file under two names is left in one way.
            let bytes = remaining.files.first { $0.object == object }?.bytes ?? bytes(objects[object].contents)
            remaining.files.append(
                .init(
                    path: "\(path)/\(name)", bytes: bytes, object: object, inode: objects[object].inode,
                    born: objects[object].born, lastSynced: objects[object].lastSynced))
        }
    }
}
