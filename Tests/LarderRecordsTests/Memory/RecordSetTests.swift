import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Sets of records")
struct RecordSetTests {
    @Test("A set of records holds what a set of numbers holds, and gives it in ascending order")
    func model() {
        let seed = TestSeed.of("record sets")
        var numbers = SeededNumbers(seed: seed, "record sets")
        var (set, model): (RecordSet, Set<UInt64>) = (RecordSet(), [])
        for _ in 0..<5_000 {
            let id = numbers.next() % 200_000
            if numbers.next() % 4 > 0 {
                #expect(set.insert(id) == model.insert(id).inserted, "seed \(seed)")
            } else {
                let expected = model.filter { $0 >= id }.min()
                #expect(set.popFirst(from: id) == expected, "seed \(seed)")
                if let expected { model.remove(expected) }
            }
            #expect(set.count == model.count)
            #expect(set.contains(id) == model.contains(id))
        }
        var all: [UInt64] = []
        while let next = set.popFirst(from: 0) { all.append(next) }
        #expect(all == model.sorted(), "seed \(seed)")
        #expect(set.isEmpty)
    }
}
