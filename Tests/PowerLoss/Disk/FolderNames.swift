/// The names in folders: those that are surely on the disk, and the changes since, which may be.
struct FolderNames {
    struct Change {
        var removed: [(folder: Int, name: String)] = []
        var added: (folder: Int, name: String, object: Int)?

        func isName(_ name: String, in folder: Int) -> Bool {
            added.map { $0.folder == folder && $0.name == name } ?? false
        }

        func touches(_ folder: Int) -> Bool { added?.folder == folder || removed.contains { $0.folder == folder } }
    }

    typealias Entries = [Int: [String: Int]]

    let order: PowerCut.Order
    private(set) var durable: Entries = [:]
    private(set) var pending: [Change] = []

    init(order: PowerCut.Order) { self.order = order }

    mutating func note(_ change: Change) { pending.append(change) }

    mutating func synchronize(folder: Int, ancestors: Set<Int>) {
        switch order {
        case .separate:
            var left: [Change] = []
            for change in pending {
                guard change.touches(folder) else {
                    left.append(change)
                    continue
                }
                // What it takes out of another folder is there no more, and does not come back with its older name.
                for (folder, name) in change.removed {
                    for older in left where older.isName(name, in: folder) {
                        durable.apply(Change(removed: older.removed))
                    }
                    left.removeAll { $0.isName(name, in: folder) }
                }
                durable.apply(change)
            }
            pending = left
        case .journalled:
            commit { change in change.touches(folder) || change.added.map { ancestors.contains($0.object) } == true }
        }
    }

    /// - Parameter ancestors: The folders in which the file is, up to the root.
    mutating func synchronize(file: Int, ancestors: Set<Int>) {
        guard order == .journalled else { return }
        commit { change in
            change.added.map { $0.object == file || ancestors.contains($0.object) } == true
        }
    }

    private mutating func commit(upToLast isMeant: (Change) -> Bool) {
        guard let last = pending.lastIndex(where: isMeant) else { return }
        for change in pending[...last] { durable.apply(change) }
        pending.removeFirst(last + 1)
    }

    /// With every change.
    var all: Entries {
        var entries = durable
        for change in pending { entries.apply(change) }
        return entries
    }

    /// What a power cut may leave.
    func torn(by random: inout some RandomNumberGenerator) -> Entries {
        guard !pending.isEmpty else { return durable }
        var entries = durable
        switch order {
        case .journalled:
            for change in pending.prefix(Int.random(in: 0...pending.count, using: &random)) { entries.apply(change) }
        case .separate:
            // Of each folder the first few. A change of two folders is in both or in none.
            var lost: Set<Int> = []
            for change in pending {
                let folders = Set(change.removed.map(\.folder) + (change.added.map { [$0.folder] } ?? []))
                if lost.isDisjoint(with: folders), Int.random(in: 0..<3, using: &random) > 0 {
                    entries.apply(change)
                } else {
                    lost.formUnion(folders)
                }
            }
        }
        return entries
    }
}

extension FolderNames.Entries {
    fileprivate mutating func apply(_ change: FolderNames.Change) {
        for (folder, name) in change.removed { self[folder, default: [:]][name] = nil }
        if let (folder, name, object) = change.added { self[folder, default: [:]][name] = object }
    }
}
