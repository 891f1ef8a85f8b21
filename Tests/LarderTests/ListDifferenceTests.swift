import Larder
import LarderTestSupport
import Testing

@Suite("Differences between lists")
struct ListDifferenceTests {
    private struct Item: Equatable, Identifiable {
        var id: Int
        var text = ""
    }

    private func items(_ ids: [Int]) -> [Item] { ids.map { Item(id: $0) } }

    @Test("Elements that come, go and change their order are told apart")
    func kinds() {
        let difference = ListDifference(from: items([1, 2, 3, 4, 5]), to: items([6, 1, 5, 3, 4]))
        #expect(difference.removals == [1])
        #expect(difference.insertions == [0])
        #expect(difference.moves == [.init(old: 4, new: 2)])
        #expect(difference.updates == [])
    }

    @Test("An element that differs is updated at its new place, whether it has moved or not")
    func updates() {
        let old = [Item(id: 1), Item(id: 2), Item(id: 3)]
        let new = [Item(id: 3, text: "moved"), Item(id: 1), Item(id: 2, text: "stayed")]
        let difference = ListDifference(from: old, to: new)
        #expect(difference.updates == [0, 2])
        #expect(difference.moves == [.init(old: 2, new: 0)])
        #expect(ListDifference(from: old, to: old).isEmpty)
    }

    @Test("Objects of answers are told apart by what the program says")
    func objects() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let before = try #require(app.read(recipeList)["recipes"]).elements
            try await app.write(recipeList, json: soupAndBread("Stew"))
            let after = try #require(app.read(recipeList)["recipes"]).elements
            let difference = ListDifference(from: before, to: after) { $0["author"]?["name"]?.string }
            #expect(difference.updates == [0])
            #expect(difference.removals.isEmpty && difference.insertions.isEmpty && difference.moves.isEmpty)
        }
    }

    @Test("A table that follows the difference shows the new list, with as few moves as can be")
    func random() {
        let seed = TestSeed.of("list differences")
        var numbers = SeededNumbers(seed: seed)
        for _ in 0..<2000 {
            let old = (0..<Int.random(in: 0...12, using: &numbers)).map { _ in random(&numbers) }
            let new =
                Bool.random(using: &numbers)
                ? (0..<Int.random(in: 0...12, using: &numbers)).map { _ in random(&numbers) }
                : old.shuffled(using: &numbers)
            let difference = ListDifference(from: old, to: new)
            let leaving = Set(difference.removals + difference.moves.map(\.old))
            var shown = old.indices.filter { !leaving.contains($0) }.map { old[$0].id }
            let coming =
                difference.insertions.map { ($0, new[$0].id) } + difference.moves.map { ($0.new, old[$0.old].id) }
            for (place, id) in coming.sorted(by: { $0.0 < $1.0 }) { shown.insert(id, at: place) }
            #expect(shown == new.map(\.id), "seed \(seed)")
            #expect(leaving.count == difference.removals.count + difference.moves.count)
            #expect(difference.removals == difference.removals.sorted())
            #expect(difference.insertions == difference.insertions.sorted())
            #expect(difference.moves.map(\.new) == difference.moves.map(\.new).sorted())
            #expect(difference.isEmpty == (old == new))
            let stays = shared(old, new)
            #expect(difference.moves.count == stays.count - longest(stays.map(\.0)), "seed \(seed)")
            #expect(difference.updates == stays.filter { old[$0.0] != new[$0.1] }.map(\.1))
        }
    }

    /// The places in the old and the new list of the elements that are in both, in the new order.
    private func shared(_ old: [Item], _ new: [Item]) -> [(Int, Int)] {
        var free = old.indices.map { Optional(old[$0].id) }
        return new.indices.compactMap { place in
            guard let before = free.firstIndex(of: new[place].id) else { return nil }
            free[before] = nil
            return (before, place)
        }
    }

    /// The length of the longest subsequence that ascends, by trying each end.
    private func longest(_ numbers: [Int]) -> Int {
        var lengths: [Int] = []
        for (index, number) in numbers.enumerated() {
            lengths.append(1 + (0..<index).filter { numbers[$0] < number }.map { lengths[$0] }.reduce(0, max))
        }
        return lengths.max() ?? 0
    }

    private func random(_ numbers: inout SeededNumbers) -> Item {
        Item(id: .random(in: 0..<9, using: &numbers), text: Bool.random(using: &numbers) ? "a" : "b")
    }
}
