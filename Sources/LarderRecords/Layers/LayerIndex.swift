import LarderGraphQL

/// Which layers of a set touch a key.
///
/// The layers that touch a key are a chain, the last layer first. Whenever one of them is laid, so are all that were
/// there: it is enough to ask for the last.
final class LayerIndex: Sendable {
    private struct Link {
        var layer: Int32
        var next: Int32
    }

    /// Unchecked: shared parts are never changed.
    private struct Table: @unchecked Sendable {
        /// By the keys' numbers: the first link.
        var chains = SharedMap<UInt64, Int32>()
        var links = SharedList<Link>()
        /// How many layers are in it or in `always`.
        var count = 0
        var always = OverlaidLayers()
        /// By the mutations' idempotency keys, except keys that are too long to be stored as they are.
        var mutations = SharedMap<ExactText, Int32>()
        var hasLongKeys = false

        mutating func append(_ layer: OptimisticLayer) {
            defer { count += 1 }
            mutations.set(ExactText(layer.key.text), Int32(truncatingIfNeeded: count))
            hasLongKeys = hasLongKeys || layer.key.text.utf8.count > StoredKey.maximumSize
            guard let touched = layer.touched else {
                always.insert(count)
                return
            }
            for number in touched.numbers {
                let link = Link(layer: Int32(truncatingIfNeeded: count), next: chains[number] ?? -1)
                chains.set(number, Int32(truncatingIfNeeded: links.count))
                links.append(link)
            }
        }
    }

    let layers: SharedList<OptimisticLayer>
    private let table: Table

    /// - Parameter earlier: Of the first of the layers.
    init(_ layers: SharedList<OptimisticLayer>, goingOnFrom earlier: LayerIndex? = nil) {
        var table = earlier?.table ?? Table()
        for index in table.count..<layers.count { table.append(layers[index]) }
        self.table = table
        self.layers = layers
    }

    /// The layers of which it is not known what they touch.
    var always: OverlaidLayers { table.always }

    /// The last layer that touches a key; nil where none does.
    @inline(__always)
    func last(touching number: UInt64) -> Int? {
        table.chains[number].map { Int(table.links[Int($0)].layer) }
    }

    /// Whether there are mutations that are not found by the stored forms of their keys.
    var hasLongKeys: Bool { table.hasLongKeys }

    /// The layer of a mutation, by the stored form of its key.
    ///
    /// Safe: the caller keeps the key for the length of the call, which compares it alone.
    func layer(ofMutation key: UnsafeRawBufferPointer) -> Int? { unsafe table.mutations[key].map(Int.init) }

    /// Adds layers near this one, of which a caller who reads object after object is likely to ask next: at most so
    /// many, and only where few others are connected with them.
    ///
    /// - Parameter mayAdd: Whether the caller can lay a layer over the layers in `laid`.
    /// - Complexity: O(c) in the count, however many layers there are.
    func addNeighbors(
        of layer: Int, atMost count: Int, to laid: inout OverlaidLayers, where mayAdd: (Int) -> Bool
    ) {
        var rest = count
        let later = (layer + 1)..<min(layer + 1 + count, layers.count)
        let earlier = max(0, layer - count)..<layer
        for neighbor in Array(later) + earlier.reversed() where rest > 0 && !laid.contains(neighbor) {
            guard let group = group(of: neighbor, beyond: laid), group.allSatisfy(mayAdd) else { continue }
            for member in group { laid.insert(member) }
            rest -= group.count
        }
    }

    /// A layer and what is connected with it; nil if that is much.
    private func group(of layer: Int, beyond laid: OverlaidLayers) -> [Int]? {
        var (group, next, steps) = ([layer], 0, 0)
        while next < group.count {
            for number in layers[group[next]].touched?.numbers ?? [] {
                var link = table.chains[number] ?? -1
                while link >= 0 {
                    let (other, following) = (Int(table.links[Int(link)].layer), table.links[Int(link)].next)
                    if !laid.contains(other), !group.contains(other) { group.append(other) }
                    link = following
                    steps += 1
                    if steps > 32 || group.count > 4 { return nil }
                }
            }
            next += 1
        }
        return group
    }

    /// Adds layers, and all that are connected with them through the keys that they touch.
    func add(_ wanted: [Int], of layers: SharedList<OptimisticLayer>, to laid: inout OverlaidLayers) {
        var rest = wanted.filter { laid.insert($0) }
        var seen: Set<UInt64> = []
        while let layer = rest.popLast() {
            for number in layers[layer].touched?.numbers ?? [] {
                guard seen.insert(number).inserted else { continue }
                var link = table.chains[number] ?? -1
                while link >= 0 {
                    let other = Int(table.links[Int(link)].layer)
                    if laid.insert(other) { rest.append(other) }
                    link = table.links[Int(link)].next
                }
            }
        }
    }
}

extension OverlaidLayers {
    /// Adds what was demanded, and all that is connected with it.
    ///
    /// - Parameter isLast: Whether nothing more is to be demanded: then all are added.
    mutating func widen(
        by demand: UnmetDemand, _ isLast: Bool = false, of layers: SharedList<OptimisticLayer>, _ index: LayerIndex
    ) {
        if demand.isEverything || isLast {
            self = OverlaidLayers(all: layers.count)
        } else {
            index.add(demand.layers, of: layers, to: &self)
        }
    }
}
