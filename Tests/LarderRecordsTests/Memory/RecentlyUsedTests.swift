import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Memory for recently used values is bounded by bytes")
struct RecentlyUsedTests {
    @Test("A value that is used again stays, however many are used once, and the rest do not go at once")
    func order() {
        var kept = RecentlyUsed<Int, String>(limit: 1_000)
        kept.keep("always", for: -1, size: 100)
        var most = 0
        for number in 0..<500 {
            let gone = kept.keep("once", for: number, size: 50)
            #expect(kept.value(for: -1) == "always")
            #expect(kept.value(for: number) == "once")
            #expect(kept.size <= 1_000)
            #expect(gone.count <= 6)
            most = max(most, kept.count)
        }
        #expect(most == 19)
        #expect(kept.value(for: 499) != nil && kept.value(for: 490) != nil && kept.value(for: 400) == nil)
    }

    @Test("The size of a value that is kept again is its new one, and one that is too large is kept alone")
    func sizes() {
        var kept = RecentlyUsed<Int, Int>(limit: 100)
        kept.keep(1, for: 1, size: 10)
        kept.keep(1, for: 1, size: 30)
        #expect(kept.size == 30)
        kept.keep(2, for: 2, size: 10)
        #expect(kept.keep(3, for: 3, size: 500).sorted() == [1, 2])
        #expect(kept.value(for: 3) == 3)
        #expect(kept.keep(4, for: 4, size: 10) == [3])
        kept.remove { $0 == 4 }
        #expect(kept.size == 0 && kept.count == 0)
    }

    @Test("Names of a megabyte each do not fill the memory, and the names met last are known")
    func names() {
        let table = NameTable()
        let long = String(repeating: "n", count: 1 << 20)
        for number in 1...100 as ClosedRange<FieldID> { table.learn([ExactText("\(long)\(number)"): number]) }
        #expect(table.extent.size <= NameTable.limit)
        #expect(table.extent.count > 8 && table.extent.count < 17)
    }

    @Test("Outcomes of conditions do not fill the memory")
    func layouts() throws {
        let names = (0..<10).map { "c\($0)" }
        let variables = names.map { "$\($0): Boolean!" }.joined(separator: " ")
        let fields = (0..<200).map { "f\($0): login @include(if: $\(names[$0 % 10]))" }.joined(separator: " ")
        let operation = try CompiledOperation(
            operation: nil, in: Document(parsing: "query(\(variables)) { viewer { \(fields) } }"),
            SchemaIndex(parsing: movieSchema))
        for number in 0..<300 {
            _ = try operation.bound(
                Dictionary(
                    uniqueKeysWithValues: names.enumerated().map { index, name in
                        (name, .boolean(number >> index & 1 == 1))
                    }))
        }
        #expect(operation.size < 16 << 20)
    }

    @Test("A table that grows holds what was put into it, wherever it was moved")
    func table() {
        var table = GrowingTable<Int>()
        for number in 0..<10_000 {
            table.append(number)
            table.append(contentsOf: [number, number][...])
            table[table.count - 1] += 1
        }
        let taken = table.take()
        let numbers = Array(taken.elements)
        let left = table.count
        #expect(numbers.count == 30_000 && left == 0)
        #expect(numbers.indices.allSatisfy { numbers[$0] == $0 / 3 + ($0 % 3 == 2 ? 1 : 0) })
        table.append(7)
        let first = table[0]
        #expect(first == 7)
        var empty = GrowingTable<Int>(capacity: 9)
        let nothing = empty.take().count
        #expect(nothing == 0)
    }
}
