import Foundation
import LarderTestSupport
import Testing

@testable import LarderLMDB

/// Each in a file that is sound but for one place, so that nothing else finds it.
@Suite("Damage in one place", .timeLimit(.minutes(5)))
struct PageDamageTests {
    private struct DataBytes {
        var bytes: [UInt8]
        let meta: MetaPage

        init(_ folder: URL) throws {
            bytes = Array(try Data(contentsOf: folder.appending(path: "data.mdb")))
            meta = try MetaPage.newest(in: DataFile(folder: folder.path, options: .init()).pages)
        }

        func number<Number: FixedWidthInteger & BitwiseCopyable>(at place: Int, as type: Number.Type) -> Number {
            bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: type) }
        }

        mutating func put(_ number: some FixedWidthInteger, at place: Int) {
            withUnsafeBytes(of: number) { bytes.replaceSubrange(place..<place + $0.count, with: $0) }
        }

        mutating func swap<Number: FixedWidthInteger & BitwiseCopyable>(_ one: Int, _ other: Int, _ type: Number.Type) {
            let numbers = (number(at: one, as: type), number(at: other, as: type))
            put(numbers.1, at: one)
            put(numbers.0, at: other)
        }

        /// Where a node of a page begins.
        func node(_ index: Int, of page: UInt64) -> Int {
            let start = Int(page) * pageSize
            return start + Int(number(at: start + 16 + 2 * index, as: UInt16.self))
        }

        /// Where the value of a node begins.
        func value(_ index: Int, of page: UInt64) -> Int {
            let node = node(index, of: page)
            return node + 8 + Int(number(at: node + 6, as: UInt16.self))
        }

        /// The page that names the tables.
        var names: UInt64 { meta.mainTree.root }
        /// Where the record of each table begins.
        var keys: Int { value(0, of: names) }
        var records: Int { value(1, of: names) }
        var recordsRoot: UInt64 { number(at: records + 40, as: UInt64.self) }
        var depth: Int { Int(number(at: records + 6, as: UInt16.self)) }
        /// To which a node of the records' root leads.
        func child(_ index: Int) -> UInt64 { UInt64(number(at: node(index, of: recordsRoot), as: UInt32.self)) }
        /// The first page of the first record's value.
        var overflow: UInt64 { number(at: value(0, of: recordsRoot), as: UInt64.self) }
    }

    /// The error of the walk over a file that was damaged.
    ///
    /// - Parameters:
    ///   - count: How many records the file has.
    ///   - size: Of each of their values.
    ///   - damage: Answers the page that is to be named.
    private func expect(
        _ what: String, as code: LMDBError.Code = .damaged, records count: UInt64 = 3, of size: Int = 10,
        sourceLocation: SourceLocation = #_sourceLocation, _ damage: (inout DataBytes) throws -> UInt64
    ) async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let records = try environment.records
            let value = [UInt8](repeating: 1, count: size)
            for _ in 0..<5 {
                try environment.write { transaction in
                    for id in 1...count { try transaction.put(id, value.rawSpan, in: records) }
                }
            }
            try environment.close()
            try requireSound(folder)
            var data = try DataBytes(folder)
            let page = try damage(&data)
            try Data(data.bytes).write(to: folder.appending(path: "data.mdb"))
            let error = try failure { try requireSound(folder) }
            #expect(error?.code == code, sourceLocation: sourceLocation)
            #expect(error?.page == page, sourceLocation: sourceLocation)
            #expect(error?.message.contains(what) == true, "\(error as Any)", sourceLocation: sourceLocation)
        }
    }

    @Test("Keys of a leaf that are out of order")
    func leafOrder() async throws {
        try await expect("its keys are out of order") { data in
            let places = Int(data.recordsRoot) * pageSize + 16
            data.swap(places, places + 2, UInt16.self)
            return data.recordsRoot
        }
    }

    @Test(
        "A key in a branch, or the first of a leaf, that is less than what comes before it", arguments: [true, false])
    func orderOfPages(isInBranch: Bool) async throws {
        try await expect("its keys are out of order", records: 2_000, of: 200) { data in
            try #require(data.depth == 2)
            let page = isInBranch ? data.recordsRoot : data.child(2)
            data.put(0 as UInt64, at: data.node(isInBranch ? 2 : 0, of: page) + 8)
            return page
        }
    }

    @Test("A page to which two nodes lead")
    func sharedPage() async throws {
        try await expect("the page is in use twice, or in use and free", records: 2_000, of: 200) { data in
            let page = data.child(1)
            data.put(UInt32(page), at: data.node(2, of: data.recordsRoot))
            return page
        }
    }

    @Test("A page after the last")
    func noPage() async throws {
        try await expect("there is no such page; the last is", records: 2_000, of: 200) { data in
            let page = data.meta.lastPage + 1
            data.put(UInt32(page), at: data.node(2, of: data.recordsRoot))
            return page
        }
    }

    @Test("A tree that is deeper than any of LMDB's")
    func depth() async throws {
        try await expect("a tree has depth 33") { data in
            data.put(33 as UInt16, at: data.records + 6)
            return data.names
        }
    }

    @Test("A key of no bytes")
    func emptyKey() async throws {
        try await expect("a key has 0 bytes") { data in
            let node = data.node(0, of: data.names)
            data.put(52 as UInt16, at: node)
            data.put(0 as UInt16, at: node + 6)
            return data.names
        }
    }

    @Test("A table of whose record two bytes are missing")
    func shortRecord() async throws {
        try await expect("a table has no record") { data in
            let node = data.node(0, of: data.names)
            data.put(46 as UInt16, at: node)
            data.put(6 as UInt16, at: node + 6)
            return data.names
        }
    }

    @Test("A table whose entry is a tree")
    func treeInTable() async throws {
        try await expect("a table names a tree") { data in
            data.put(PageLayout.treeNode, at: data.node(0, of: data.recordsRoot) + 4)
            return data.recordsRoot
        }
    }

    @Test("A value's page that calls itself another, or is of another kind", arguments: [true, false])
    func noOverflowPage(isOther: Bool) async throws {
        let what = isOther ? "it calls itself 1" : "it is no overflow page"
        try await expect(what, records: 1, of: 2 * pageSize + 100) { data in
            let start = Int(data.overflow) * pageSize
            if isOther { data.put(1 as UInt64, at: start) } else { data.put(PageLayout.leaf, at: start + 10) }
            return data.overflow
        }
    }

    @Test("A table that has fewer entries than its record says")
    func entryCount() async throws {
        try await expect("a tree's record counts other pages or entries than the tree has") { data in
            data.put(4 as UInt64, at: data.records + 32)
            return data.names
        }
    }

    @Test("An empty table that has levels")
    func emptyTree() async throws {
        try await expect("an empty tree has depth 1") { data in
            data.put(1 as UInt16, at: data.keys + 6)
            return data.names
        }
    }

    @Test("A table of several values for a key, which is no table of this library's")
    func duplicates() async throws {
        try await expect(#"Table "records" has duplicate or reversed keys."#, as: .foreign) { data in
            data.put(TreeRecord.integerKeys | 4, at: data.records + 4)
            return data.names
        }
    }

    @Test("A value of three pages that has two")
    func overflowPages() async throws {
        try await expect("its value needs 3 pages and has 2", records: 1, of: 2 * pageSize + 100) { data in
            data.put(2 as UInt32, at: Int(data.overflow) * pageSize + 12)
            data.put(2 as UInt64, at: data.records + 24)
            return data.overflow
        }
    }

    @Test("A list of free pages that does not descend, or says that it has more than there is room for")
    func freeList() async throws {
        for isTooLong in [false, true] {
            try await expect("a list of free pages is out of order or too long") { data in
                let page = data.meta.freeTree.root
                try #require(data.meta.freeTree.depth == 1)
                let entries = 0..<Int(data.meta.freeTree.entries)
                let counts = entries.map { data.number(at: data.value($0, of: page), as: UInt64.self) }
                let index = try #require(counts.firstIndex { $0 >= 2 })
                let list = data.value(index, of: page)
                if isTooLong {
                    data.put(UInt64(data.number(at: data.node(index, of: page), as: UInt32.self) / 8), at: list)
                } else {
                    data.swap(list + 8, list + 16, UInt64.self)
                }
                return page
            }
        }
    }

    @Test("A list of pages that a transaction to come has freed")
    func freedLater() async throws {
        try await expect("pages were freed in the future") { data in
            let page = data.meta.freeTree.root
            let last = data.node(Int(data.meta.freeTree.entries) - 1, of: page)
            data.put(data.meta.transaction + 1, at: last + 8)
            return page
        }
    }

    @Test("Meta pages that disagree on how large a page is")
    func pageSizes() async throws {
        try await expect("its meta pages have different page sizes") { data in
            data.put(UInt32(pageSize / 2), at: pageSize + 40)
            return 1
        }
    }

    @Test("A page whose nodes overlap, or whose list of nodes reaches into the first of them")
    func overlappingNodes() {
        func fault(lower: UInt16, upper: UInt16, nodes: [UInt16]) -> String? {
            let layout = PageLayout(pageSize: 4_096)
            var page = [UInt8](repeating: 0, count: layout.pageSize)
            func put(_ numbers: [UInt16], _ place: Int) {
                for (index, number) in numbers.enumerated() {
                    page[place + 2 * index] = UInt8(truncatingIfNeeded: number)
                    page[place + 2 * index + 1] = UInt8(number >> 8)
                }
            }
            // Where there are three, the offset of the last is the size of its own value.
            put([20, 0, 0, 8], 20)
            put([2_004, 0, 0, 8], 56)
            put([2_004, 0, 0, 8], 2_076)
            put([lower, upper] + nodes, 12)
            // What lies behind that memory is not looked at.
            var extents = [UInt16](repeating: 0, count: layout.pageSize / 2) + [1]
            return page.withUnsafeBytes { page in
                extents.withUnsafeMutableBufferPointer { extents in
                    guard let page = page.baseAddress, let extents = extents.baseAddress else { return "no memory" }
                    return layout.fault(page, isBranch: false, fewestNodes: 1, extents: extents)
                }
            }
        }
        #expect(fault(lower: 20, upper: 56, nodes: [56, 2_076]) == nil)
        #expect(fault(lower: 22, upper: 20, nodes: [56, 2_076, 20]) == "its free space runs from 22 to 20")
        #expect(fault(lower: 20, upper: 4_098, nodes: [56, 2_076]) == "its free space runs from 20 to 4098")
        #expect(fault(lower: 20, upper: 2_076, nodes: [2_076, 2_076]) == "its nodes overlap or leave a gap")
    }
}
