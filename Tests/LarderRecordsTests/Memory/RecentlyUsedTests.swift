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
            #expect(gone.count <= 1)
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
        #expect(kept.keep(3, for: 3, size: 500).map(\.key) == [1, 2])
        #expect(kept.value(for: 3) == 3)
        #expect(kept.keep(4, for: 4, size: 10).map(\.key) == [3])
        kept.remove(4)
        kept.remove(5)
        #expect(kept.size == 0 && kept.count == 0)
    }

    @Test("What is kept is what a list in the order of use would keep", arguments: 0..<20)
    func model(_ number: Int) {
        let seed = TestSeed.of("recently used") &+ UInt64(number)
        var random = SeededNumbers(seed: seed)
        var kept = RecentlyUsed<Int, Int>(limit: 100)
        // The least recently used first.
        var expected: [(key: Int, value: Int, size: Int)] = []
        for step in 0..<2_000 {
            let key = Int.random(in: 0..<30, using: &random)
            let place = expected.firstIndex { $0.key == key }
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                kept.remove(key)
                if let place { expected.remove(at: place) }
            case 1, 2:
                let known = place.map { expected.remove(at: $0) }
                if let known { expected.append(known) }
                #expect(kept.value(for: key) == known?.value, "seed \(seed)")
            default:
                let size = Int.random(in: 1...30, using: &random)
                if let place { expected.remove(at: place) }
                expected.append((key, step, size))
                var gone: [Int] = []
                while expected.reduce(0, { $0 + $1.size }) > 100 { gone.append(expected.removeFirst().key) }
                #expect(kept.keep(step, for: key, size: size).map(\.key) == gone, "seed \(seed)")
            }
            #expect(kept.count == expected.count && kept.size == expected.reduce(0) { $0 + $1.size }, "seed \(seed)")
        }
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
