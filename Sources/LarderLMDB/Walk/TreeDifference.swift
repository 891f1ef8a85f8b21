import CLMDB

/// The keys of a table under which two snapshots may have different entries: all keys on pages that the snapshots do not
/// share.
package struct DifferingKeys: Sendable, Hashable {
    /// What the earlier snapshot has there, ascending.
    package var earlier: [[UInt8]] = []
    /// What the later one has there, ascending.
    package var later: [[UInt8]] = []
}

extension Environment {
    /// The keys of a table of which the entries may differ between two snapshots, where neither has changed the table
    /// itself. A key that is in neither list has the same entry in both, or none in both.
    ///
    /// LMDB never changes a page that a snapshot sees. A commit writes a new page for each that it changes, and for each
    /// page above it. So a page that belongs to the trees of both snapshots is the same in both, with all below it.
    /// Both snapshots are open, so no page of either was used again.
    ///
    /// - Complexity: O(m log n) in the pages m that were changed, and one look at each branch page of the earlier
    ///   snapshot; memory: three bits for each page of the file, and the keys.
    package func differences(
        in table: Table, from earlier: borrowing some Transaction & ~Copyable,
        to later: borrowing some Transaction & ~Copyable
    ) throws(LMDBError) -> DifferingKeys {
        guard let from = try tree(of: table, in: earlier), let to = try tree(of: table, in: later) else {
            throw LMDBError(.tableMissing, "The table is none of this environment.", path: folder)
        }
        guard from.root != to.root else { return DifferingKeys() }
        var statistics = MDB_stat()
        let status = unsafe mdb_env_stat(handle, &statistics)
        guard status == MDB_SUCCESS else { throw .make(status, doing: "asking for the page size", path: folder) }
        let difference = TreeDifference(
            file: files.data.pages, pageSize: Int(statistics.ms_psize), fileSize: try files.data.status().size)
        return try difference.run(from: from, to: to)
    }

    /// The record of a table's tree, as LMDB keeps it under the table's name in the main tree.
    private func tree(
        of table: Table, in transaction: borrowing some Transaction & ~Copyable
    ) throws(LMDBError) -> TreeRecord? {
        guard let name = tables.first(where: { $0.value == table })?.key else { return nil }
        // The main tree has this handle in every environment.
        let main = Table(dbi: 1, keys: .bytes)
        guard let bytes = try transaction.get(Array(name.utf8).rawSpan, in: main),
            bytes.byteCount == TreeRecord.byteCount
        else { return nil }
        return unsafe bytes.withUnsafeBytes { bytes in unsafe bytes.baseAddress.map { unsafe TreeRecord($0) } }
    }
}

/// Finds the pages of one tree that another does not have, and the keys on them.
///
/// Safe: pages are read into the memory that it owns, one for each level, and checked before anything in them is
/// followed.
@safe private final class TreeDifference {
    private let file: PageFile
    private let pageSize: Int
    private let layout: PageLayout
    private let memory: WalkMemory
    /// All pages of the earlier tree.
    private var earlier: PageBits
    /// Those of them from which on the later tree is the same.
    private var shared: PageBits
    /// Those of the later tree alone.
    private var visited: PageBits

    init(file: PageFile, pageSize: Int, fileSize: Int64) {
        self.file = file
        self.pageSize = pageSize
        layout = PageLayout(pageSize: pageSize)
        memory = WalkMemory(pageSize: pageSize)
        let count = Int(clamping: fileSize / Int64(pageSize))
        earlier = PageBits(count: count)
        shared = PageBits(count: count)
        visited = PageBits(count: count)
    }

    func run(from: TreeRecord, to: TreeRecord) throws(LMDBError) -> DifferingKeys {
        var keys = DifferingKeys()
        if !from.isEmpty { try collect(from.root, level: 0, in: from) }
        if !to.isEmpty {
            try gather(to.root, level: 0, in: to, &keys.later) { (page) throws(LMDBError) in
                if earlier.contains(page) {
                    shared.insert(page)
                    return false
                }
                guard visited.insert(page) else { throw repeated(page) }
                return true
            }
        }
        if !from.isEmpty {
            try gather(from.root, level: 0, in: from, &keys.earlier) { page in !shared.contains(page) }
        }
        return keys
    }

    /// Takes in all pages of the earlier tree; leaves need not be read for that.
    private func collect(_ page: UInt64, level: Int, in tree: TreeRecord) throws(LMDBError) {
        guard earlier.insert(page) else { throw repeated(page) }
        guard level + 1 < tree.depth else { return }
        let bytes = unsafe memory.level(level)
        try unsafe read(page, isBranch: true, into: bytes)
        for index in unsafe 0..<layout.nodeCount(bytes) {
            try collect(unsafe layout.child(layout.node(index, bytes)), level: level + 1, in: tree)
        }
    }

    /// Gathers the keys on the pages of a tree.
    ///
    /// - Parameter isVisited: Whether a page is looked into; otherwise nothing below it is.
    private func gather(
        _ page: UInt64, level: Int, in tree: TreeRecord, _ keys: inout [[UInt8]],
        where isVisited: (UInt64) throws(LMDBError) -> Bool
    ) throws(LMDBError) {
        guard try isVisited(page) else { return }
        let isBranch = level + 1 < tree.depth
        let bytes = unsafe memory.level(level)
        try unsafe read(page, isBranch: isBranch, into: bytes)
        for index in unsafe 0..<layout.nodeCount(bytes) {
            let node = unsafe layout.node(index, bytes)
            if isBranch {
                try gather(unsafe layout.child(node), level: level + 1, in: tree, &keys, where: isVisited)
            } else {
                unsafe keys.append(Array(layout.key(node)))
            }
        }
    }

    private func read(
        _ page: UInt64, isBranch: Bool, into bytes: UnsafeMutableRawPointer
    ) throws(LMDBError) {
        try unsafe file.read(page, count: 1, pageSize: pageSize, into: bytes)
        guard unsafe layout.number(bytes) == page,
            unsafe layout.flags(bytes) == (isBranch ? PageLayout.branch : PageLayout.leaf)
        else { throw .damagedPage("page \(page) is no page of its tree", path: file.path, page: page) }
        if let fault = unsafe layout.fault(bytes, isBranch: isBranch, fewestNodes: 1, extents: memory.extents) {
            throw .damagedPage("page \(page): \(fault)", path: file.path, page: page)
        }
    }

    private func repeated(_ page: UInt64) -> LMDBError {
        .damagedPage("page \(page) is in use twice, or lies outside the file", path: file.path, page: page)
    }
}

/// A set of pages of a file, one bit for each.
private struct PageBits {
    private var words: [UInt64]

    init(count: Int) { words = Array(repeating: 0, count: count / 64 + 1) }

    func contains(_ page: UInt64) -> Bool {
        let index = Int(page >> 6)
        return index < words.count && words[index] & (1 << (page & 63)) != 0
    }

    /// False where it was there, or no file of this length has such a page.
    @discardableResult
    mutating func insert(_ page: UInt64) -> Bool {
        let (index, bit) = (Int(page >> 6), UInt64(1) << (page & 63))
        guard index < words.count, words[index] & bit == 0 else { return false }
        words[index] |= bit
        return true
    }
}
