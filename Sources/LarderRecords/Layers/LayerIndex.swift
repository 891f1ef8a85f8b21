/// Which layers of a set touch a key.
///
/// Open addressing over the keys' numbers, twice as many places as keys. The layers that touch a key are a chain, the
/// last layer first. Whenever one of them is laid, so are all that were there: it is enough to ask for the last.
final class LayerIndex: Sendable {
    private struct Link {
        var layer: Int32
        var next: Int32
    }

    private struct Table: Sendable {
        /// 0 where a place is free.
        var numbers: [UInt64] = Array(repeating: 0, count: 16)
        /// By place: the first link.
        var chains: [Int32] = Array(repeating: -1, count: 16)
        var shift: UInt64 = 60
        var used = 0
        var links: [Link] = []
        /// How many layers are in it or in `always`.
        var count = 0
        var always: [Int] = []

        /// Numbers are checksums, and spread. None is 0 in here.
        @inline(__always)
        func place(of number: UInt64) -> Int {
            let mask = numbers.count - 1
            var place = Int(truncatingIfNeeded: (number &* 0x9E37_79B9_7F4A_7C15) >> shift)
            while numbers[place] != number, numbers[place] != 0 { place = (place + 1) & mask }
            return place
        }

        mutating func append(_ layer: OptimisticLayer) {
            defer { count += 1 }
            guard let touched = layer.touched else { return always.append(count) }
            for number in touched.numbers {
                if (used + 1) * 2 > numbers.count { grow() }
                let number = LayerIndex.kept(number)
                let place = place(of: number)
                if numbers[place] == 0 {
                    numbers[place] = number
                    used += 1
                }
                links.append(Link(layer: Int32(truncatingIfNeeded: count), next: chains[place]))
                chains[place] = Int32(truncatingIfNeeded: links.count - 1)
            }
        }

        private mutating func grow() {
            let (oldNumbers, oldChains) = (numbers, chains)
            numbers = Array(repeating: 0, count: oldNumbers.count * 2)
            chains = Array(repeating: -1, count: oldNumbers.count * 2)
            shift -= 1
            for (number, chain) in zip(oldNumbers, oldChains) where number != 0 {
                let place = place(of: number)
                numbers[place] = number
                chains[place] = chain
            }
        }
    }

    private let table: Table

    /// - Parameter earlier: Of the first of the layers.
    init(_ layers: [OptimisticLayer], goingOnFrom earlier: LayerIndex? = nil) {
        var table = earlier?.table ?? Table()
        for layer in layers.dropFirst(table.count) { table.append(layer) }
        self.table = table
    }

    /// The layers of which it is not known what they touch.
    var always: [Int] { table.always }
    /// Whether all layers are laid always.
    var isTrivial: Bool { table.always.count == table.count }

    private static func kept(_ number: UInt64) -> UInt64 { number == 0 ? 1 : number }

    /// The last layer that touches a key; nil where none does.
    @inline(__always)
    func last(touching number: UInt64) -> Int? {
        let place = table.place(of: Self.kept(number))
        let chain = table.chains[place]
        return chain < 0 ? nil : Int(table.links[Int(chain)].layer)
    }

    /// Adds layers, and all that are connected with them through the keys that they touch.
    func add(_ wanted: [Int], of layers: [OptimisticLayer], to laid: inout LaidLayers) {
        var rest = wanted.filter { laid.insert($0) }
        var seen: Set<Int> = []
        while let layer = rest.popLast() {
            for number in layers[layer].touched?.numbers ?? [] {
                let place = table.place(of: Self.kept(number))
                guard seen.insert(place).inserted else { continue }
                var link = table.chains[place]
                while link >= 0 {
                    let other = Int(table.links[Int(link)].layer)
                    if laid.insert(other) { rest.append(other) }
                    link = table.links[Int(link)].next
                }
            }
        }
    }
}

extension LaidLayers {
    /// Adds what was demanded, and all that is connected with it.
    ///
    /// - Parameter isLast: Whether nothing more is to be demanded: then all are added.
    mutating func widen(
        by demand: UnmetDemand, _ isLast: Bool = false, of layers: [OptimisticLayer], _ index: LayerIndex
    ) {
        if demand.isEverything || isLast {
            self = LaidLayers(all: layers.count)
        } else {
            index.add(demand.layers, of: layers, to: &self)
        }
    }
}
