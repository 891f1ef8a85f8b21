/// Which layers of a set are meant, by their indices.
struct LaidLayers: Sendable {
    private var flags: [Bool] = []
    private(set) var count = 0

    init() {}

    /// The first so many.
    init(all count: Int) {
        flags = Array(repeating: true, count: count)
        self.count = count
    }

    @inline(__always)
    func contains(_ layer: Int) -> Bool { layer < flags.count && flags[layer] }

    /// - Returns: False if it was in it already.
    @discardableResult
    mutating func insert(_ layer: Int) -> Bool {
        if layer >= flags.count { flags += repeatElement(false, count: layer + 1 - flags.count) }
        if flags[layer] { return false }
        flags[layer] = true
        count += 1
        return true
    }

    /// Ascending.
    var indices: [Int] { flags.indices.filter { flags[$0] } }

    /// The greatest; -1 where there is none.
    var last: Int { flags.lastIndex(of: true) ?? -1 }
}
