import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Collections whose copies share what they have in common")
struct SharedCollectionTests {
    /// Keys that share the first bits, or all, of what they are found by.
    private struct Crowded: SharedMapKey, Hashable {
        var number: Int
        var spread: UInt64 { number % 3 == 0 ? 7 : UInt64(number % 40) << UInt64(number % 61) }
    }

    @Test("Copies of a map are as dictionaries are, whichever is changed", arguments: 0..<20)
    func model(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var pairs = [(map: SharedMap<Crowded, Int>(), model: [Crowded: Int]())]
        for step in 0..<600 {
            let index = Int.random(in: pairs.indices, using: &random)
            if pairs.count < 6, step % 50 == 0 { pairs.append(pairs[index]) }
            let key = Crowded(number: Int.random(in: 0..<200, using: &random))
            pairs[index].map.set(key, step)
            pairs[index].model[key] = step
        }
        for (map, model) in pairs {
            #expect(map.count == model.count)
            for number in 0..<220 { #expect(map[Crowded(number: number)] == model[Crowded(number: number)]) }
            var found: [Crowded: Int] = [:]
            map.forEach { found[$0] = $1 }
            #expect(found == model)
        }
    }

    @Test("Differences of two copies are found without visiting what they share", arguments: 0..<10)
    func unshared(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var left = SharedMap<UInt64, Int>()
        for number in 0..<UInt64(10_000) { left.set(number, 0) }
        var right = left
        var changed: Set<UInt64> = []
        for step in 1...20 {
            let key = UInt64.random(in: 0..<10_020, using: &random)
            changed.insert(key)
            if step % 2 == 0 { left.set(key, step) } else { right.set(key, step) }
        }
        var visited: [UInt64] = []
        left.forEachUnshared(with: right) { visited.append($0) }
        #expect(changed.isSubset(of: visited))
        #expect(visited.count <= 20 * 16)
        var none = 0
        left.forEachUnshared(with: left) { _ in none += 1 }
        #expect(none == 0)
        var all: Set<UInt64> = []
        SharedMap().forEachUnshared(with: left) { all.insert($0) }
        #expect(all.count == left.count)
    }

    @Test("Texts are told apart by their bytes")
    func texts() {
        var map = SharedMap<ExactText, Int>()
        map.set(ExactText("\u{E9}"), 1)
        map.set(ExactText("e\u{301}"), 2)
        #expect(map[ExactText("\u{E9}")] == 1)
        #expect(Array("e\u{301}".utf8).withUnsafeBytes { map[$0] } == 2)
        #expect(Array("e".utf8).withUnsafeBytes { map[$0] } == nil)
    }

    private final class Element: Sendable {}

    @Test("A list begins with the lists that it was copied from, and with no other")
    func beginning() {
        let elements = (0..<1_000).map { _ in Element() }
        var list = SharedList(elements.prefix(300))
        let first = list
        for element in elements.dropFirst(300) { list.append(element) }
        #expect(list.count == 1_000 && (0..<1_000).allSatisfy { list[$0] === elements[$0] })
        #expect(first.count == 300 && first[299] === elements[299])
        #expect(list.begins(with: first) && !first.begins(with: list))
        #expect(list.begins(with: SharedList(elements.prefix(700))))
        var other = first
        other.append(Element())
        #expect(!list.begins(with: other))
        #expect(list.begins(with: SharedList()))
    }

    @Test("A set of layers is as a set of numbers is", arguments: 0..<20)
    func laidLayers(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        let all = Int.random(in: 0...300, using: &random)
        var pairs = [
            (laid: OverlaidLayers(), model: Set<Int>()), (laid: OverlaidLayers(all: all), model: Set(0..<all)),
        ]
        for _ in 0..<500 {
            let index = Int.random(in: pairs.indices, using: &random)
            // Mostly the next, so that the first words are full.
            let next = (0..<1000).first { !pairs[index].model.contains($0) } ?? 0
            let layer = Bool.random(using: &random) ? next : Int.random(in: 0..<500, using: &random)
            #expect(pairs[index].laid.insert(layer) == pairs[index].model.insert(layer).inserted)
        }
        var both = pairs[0].laid
        both.formUnion(pairs[1].laid)
        pairs.append((laid: both, model: pairs[0].model.union(pairs[1].model)))
        for (laid, model) in pairs {
            #expect(laid.count == model.count)
            #expect(laid.last == model.max() ?? -1)
            #expect((0..<600).filter { laid.contains($0) } == model.sorted())
            for (other, others) in pairs { #expect(laid.indices(beyond: other) == model.subtracting(others).sorted()) }
        }
    }
}
