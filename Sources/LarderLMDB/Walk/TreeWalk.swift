/// One walk over a file: the free tree, the main tree, and every table that the main tree names.
final class TreeWalk {
    private let file: PageFile
    private let meta: MetaPage
    private let layout: PageLayout
    private let memory: WalkMemory
    private var pages: PageMap
    private var summary = PageWalk.Summary()

    /// What a tree is for, and so what its nodes may be.
    private enum Role { case free, main, table }

    /// A tree on its way: what was counted, to be compared with what its record says.
    private struct Tree {
        let role: Role
        let depth: Int
        var order: KeyOrder
        var branchPages: UInt64 = 0
        var leafPages: UInt64 = 0
        var overflowPages: UInt64 = 0
        var entries: UInt64 = 0
        /// The tables that the main tree names, with the page that does.
        var tables: [(name: String, record: TreeRecord, page: UInt64)] = []
    }

    init(file: PageFile, meta: MetaPage, fileSize: Int64) {
        self.file = file
        self.meta = meta
        layout = PageLayout(pageSize: meta.pageSize)
        memory = WalkMemory(pageSize: meta.pageSize)
        pages = PageMap(lastPage: meta.lastPage, heldPages: UInt64(fileSize) / UInt64(meta.pageSize))
        summary.pageSize = meta.pageSize
        summary.fileSize = fileSize
        summary.lastPage = meta.lastPage
        summary.transaction = meta.transaction
    }

    func run() throws(LMDBError) -> PageWalk.Summary {
        let metaPage = meta.transaction & 1
        // The free tree's flags are the environment's too; none of a tree's but its integer keys may be among them.
        guard meta.freeTree.flags & TreeRecord.treeFlags == TreeRecord.integerKeys else {
            throw damaged("its free tree has flags \(meta.freeTree.flags)", metaPage)
        }
        _ = try walk(meta.freeTree, as: .free, isInteger: true, namedOn: metaPage)
        guard meta.mainTree.flags == 0 else { throw foreign("The main table has other flags.", metaPage) }
        let tables = try walk(meta.mainTree, as: .main, isInteger: false, namedOn: metaPage)
        for table in tables {
            guard table.record.flags & ~TreeRecord.integerKeys == 0 else {
                throw foreign("Table \"\(table.name)\" has duplicate or reversed keys.", table.page)
            }
            let isInteger = table.record.flags == TreeRecord.integerKeys
            _ = try walk(table.record, as: .table, isInteger: isInteger, namedOn: table.page)
            summary.entries[table.name] = table.record.entries
        }
        if let page = pages.repeatedBeyond() { throw damaged("the page is free twice", page) }
        let used = summary.branchPages + summary.leafPages + summary.overflowPages
        summary.unusedPages = meta.lastPage - 1 - used - summary.freePages
        return summary
    }

    private func walk(
        _ record: TreeRecord, as role: Role, isInteger: Bool, namedOn page: UInt64
    ) throws(LMDBError) -> [(name: String, record: TreeRecord, page: UInt64)] {
        let order = unsafe KeyOrder(isInteger: isInteger, bytes: memory.key)
        var tree = Tree(role: role, depth: record.depth, order: order)
        if record.isEmpty {
            guard record.depth == 0 else { throw damaged("an empty tree has depth \(record.depth)", page) }
        } else {
            guard record.depth >= 1, record.depth <= TreeRecord.greatestDepth else {
                throw damaged("a tree has depth \(record.depth)", page)
            }
            try use(record.root)
            let root = unsafe memory.level(0)
            try unsafe file.read(record.root, count: 1, pageSize: meta.pageSize, into: root)
            if record.depth == 1 {
                try unsafe leaf(root, record.root, in: &tree)
            } else {
                try unsafe branch(root, record.root, level: 0, in: &tree)
            }
        }
        guard tree.entries == record.entries, tree.branchPages == record.branchPages,
            tree.leafPages == record.leafPages, tree.overflowPages == record.overflowPages
        else { throw damaged("a tree's record counts other pages or entries than the tree has", page) }
        summary.branchPages += tree.branchPages
        summary.leafPages += tree.leafPages
        summary.overflowPages += tree.overflowPages
        return tree.tables
    }

    /// Follows a branch page, whose bytes are at its level in `memory`. At most `greatestDepth` calls deep.
    private func branch(
        _ bytes: UnsafeRawPointer, _ page: UInt64, level: Int, in tree: inout Tree
    ) throws(LMDBError) {
        // LMDB leaves branches of the free tree with one node at times (its ITS#8336).
        try unsafe check(bytes, page, isBranch: true, fewestNodes: tree.role == .free ? 1 : 2)
        tree.branchPages += 1
        let count = unsafe layout.nodeCount(bytes)
        let leavesFollow = level + 2 == tree.depth
        var start = 0
        while start < count {
            let end = leavesFollow ? min(count, start + WalkMemory.batch) : count
            for index in start..<end { try unsafe use(layout.child(layout.node(index, bytes))) }
            if leavesFollow { try unsafe readLeaves(of: bytes, start..<end) }
            for index in start..<end {
                let node = unsafe layout.node(index, bytes)
                // The first key of a branch is never looked at and mostly empty.
                if index > 0 { try unsafe separate(layout.key(node), page, in: &tree) }
                let child = unsafe layout.child(node)
                if leavesFollow {
                    try unsafe leaf(memory.leaves + memory.places[index - start] * meta.pageSize, child, in: &tree)
                } else {
                    let below = unsafe memory.level(level + 1)
                    try unsafe file.read(child, count: 1, pageSize: meta.pageSize, into: below)
                    try unsafe branch(below, child, level: level + 1, in: &tree)
                }
            }
            start = end
        }
    }

    private func separate(_ key: UnsafeRawBufferPointer, _ page: UInt64, in tree: inout Tree) throws(LMDBError) {
        guard unsafe tree.order.isLegal(key) else { throw damaged("a key has \(key.count) bytes", page) }
        guard unsafe tree.order.admits(key) else { throw damaged("its keys are out of order", page) }
        unsafe tree.order.keep(key, isSeparator: true)
    }

    /// Reads the leaves that some nodes of a branch name, in the order of the file, neighbours together.
    private func readLeaves(of branch: UnsafeRawPointer, _ nodes: Range<Int>) throws(LMDBError) {
        let count = nodes.count
        for place in 0..<count {
            unsafe memory.order[place] =
                unsafe layout.child(layout.node(nodes.lowerBound + place, branch)) << 8 | UInt64(place)
        }
        var order = unsafe UnsafeMutableBufferPointer(rebasing: memory.order[..<count])
        unsafe order.sort()
        var first = 0
        while first < count {
            let page = unsafe order[first] >> 8
            var next = first
            while next < count, unsafe order[next] >> 8 == page + UInt64(next - first) {
                unsafe memory.places[Int(order[next] & 0xFF)] = next
                next += 1
            }
            let target = unsafe memory.leaves + first * meta.pageSize
            try unsafe file.read(page, count: next - first, pageSize: meta.pageSize, into: target)
            first = next
        }
    }

    private func leaf(_ bytes: UnsafeRawPointer, _ page: UInt64, in tree: inout Tree) throws(LMDBError) {
        try unsafe check(bytes, page, isBranch: false, fewestNodes: 1)
        tree.leafPages += 1
        let count = unsafe layout.nodeCount(bytes)
        tree.entries += UInt64(count)
        var previous = unsafe layout.key(layout.node(0, bytes))
        guard unsafe tree.order.admits(previous) else { throw damaged("its keys are out of order", page) }
        for index in 0..<count {
            let node = unsafe layout.node(index, bytes)
            let key = unsafe layout.key(node)
            guard unsafe tree.order.isLegal(key) else { throw damaged("a key has \(key.count) bytes", page) }
            if index > 0 {
                guard unsafe tree.order.ascends(previous, key) else { throw damaged("its keys are out of order", page) }
                unsafe previous = unsafe key
            }
            let flags = unsafe layout.nodeFlags(node)
            if flags == PageLayout.bigNode { try unsafe overflow(node, page, in: &tree) }
            switch tree.role {
            case .table:
                guard flags != PageLayout.treeNode else { throw damaged("a table names a tree", page) }
            case .main:
                if flags == PageLayout.treeNode { try unsafe name(node, page, in: &tree) }
            case .free:
                try unsafe free(node, page)
            }
        }
        unsafe tree.order.keep(previous, isSeparator: false)
    }

    private func name(_ node: UnsafeRawPointer, _ page: UInt64, in tree: inout Tree) throws(LMDBError) {
        guard unsafe layout.valueSize(node) == TreeRecord.byteCount else {
            throw damaged("a table has no record", page)
        }
        let name = unsafe String(decoding: layout.key(node), as: UTF8.self)
        unsafe tree.tables.append((name, TreeRecord(layout.value(node)), page))
    }

    /// Follows a value to its own pages, of which only the first has a header.
    private func overflow(_ node: UnsafeRawPointer, _ page: UInt64, in tree: inout Tree) throws(LMDBError) {
        let first = unsafe layout.value(node).loadUnaligned(as: UInt64.self)
        try use(first)
        let header = unsafe memory.level(TreeRecord.greatestDepth)
        let offset = Int64(first) * Int64(meta.pageSize)
        let read = try unsafe file.read(at: offset, into: header, count: PageLayout.headerSize)
        guard read == PageLayout.headerSize else { throw .truncated(path: file.path, page: first) }
        guard unsafe layout.number(header) == first else {
            throw damaged(unsafe "it calls itself \(layout.number(header))", first)
        }
        guard unsafe layout.flags(header) == PageLayout.overflow else { throw damaged("it is no overflow page", first) }
        let count = unsafe UInt64(header.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        let needed = unsafe (layout.valueSize(node) + PageLayout.headerSize - 1) / meta.pageSize + 1
        guard count >= UInt64(needed), count <= meta.lastPage else {
            throw damaged("its value needs \(needed) pages and has \(count)", first)
        }
        for next in 1..<max(count, 1) { try use(first + next) }
        tree.overflowPages += count
    }

    /// Reads a list of free pages: how many, then their numbers, descending.
    private func free(_ node: UnsafeRawPointer, _ page: UInt64) throws(LMDBError) {
        let transaction = unsafe layout.key(node).integerKey
        guard transaction <= meta.transaction else { throw damaged("pages were freed in the future", page) }
        let size = unsafe layout.valueSize(node)
        guard unsafe layout.nodeFlags(node) != PageLayout.treeNode, size >= 8 else {
            throw damaged("a list of free pages has \(size) bytes", page)
        }
        var reader = FreeListReader(capacity: size / 8 - 1)
        if unsafe layout.nodeFlags(node) == 0 {
            let bytes = unsafe UnsafeRawBufferPointer(start: layout.value(node), count: size)
            try unsafe list(bytes, page, &reader)
            return
        }
        let start = unsafe Int64(layout.value(node).loadUnaligned(as: UInt64.self)) * Int64(meta.pageSize) + 16
        let chunk = WalkMemory.chunk
        let bytes = unsafe memory.chunkBytes()
        var done = 0
        while done < size, !reader.isDone {
            let wanted = min(chunk, size - done)
            let read = try unsafe file.read(at: start + Int64(done), into: bytes, count: wanted)
            guard read == wanted else { throw .truncated(path: file.path, page: page) }
            try unsafe list(UnsafeRawBufferPointer(start: bytes, count: wanted), page, &reader)
            done += wanted
        }
    }

    private func list(
        _ bytes: UnsafeRawBufferPointer, _ page: UInt64, _ reader: inout FreeListReader
    ) throws(LMDBError) {
        var offset = 0
        while offset + 8 <= bytes.count, !reader.isDone {
            let number = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            offset += 8
            switch reader.take(number) {
            case .count: continue
            case .disorder: throw damaged("a list of free pages is out of order or too long", page)
            case .page:
                try answer(pages.free(number), number)
                summary.freePages += 1
            }
        }
    }

    private func use(_ page: UInt64) throws(LMDBError) { try answer(pages.use(page), page) }

    @inline(__always)
    private func answer(_ answer: PageMap.Answer, _ page: UInt64) throws(LMDBError) {
        switch answer {
        case .claimed: return
        case .claimedTwice: throw damaged("the page is in use twice, or in use and free", page)
        case .outOfRange: throw damaged("there is no such page; the last is \(meta.lastPage)", page)
        case .beyondFile: throw .truncated(path: file.path, page: page)
        }
    }

    private func check(
        _ bytes: UnsafeRawPointer, _ page: UInt64, isBranch: Bool, fewestNodes: Int
    ) throws(LMDBError) {
        guard unsafe layout.number(bytes) == page else {
            throw damaged(unsafe "it calls itself \(layout.number(bytes))", page)
        }
        guard unsafe layout.flags(bytes) == (isBranch ? PageLayout.branch : PageLayout.leaf) else {
            throw damaged(
                unsafe "it has flags \(layout.flags(bytes)) where a \(isBranch ? "branch" : "leaf") belongs", page)
        }
        let extents = unsafe memory.extents
        if let fault = unsafe layout.fault(bytes, isBranch: isBranch, fewestNodes: fewestNodes, extents: extents) {
            throw damaged(fault, page)
        }
    }

    private func damaged(_ what: String, _ page: UInt64) -> LMDBError {
        .damagedPage("page \(page): \(what)", path: file.path, page: page)
    }

    private func foreign(_ what: String, _ page: UInt64) -> LMDBError {
        let advice = "The file is LMDB's but no environment of this library; check the folder."
        return LMDBError(.foreign, "\(what) \(advice)", path: file.path, page: page)
    }
}
