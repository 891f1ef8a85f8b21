import CAllocations

enum Allocations {
    /// The allocations that `body` makes; nil where they cannot be counted. No other thread may work meanwhile.
    static func count(_ body: () throws -> Void) rethrows -> Int? {
        larder_allocations_begin()
        defer { _ = larder_allocations_end() }
        try body()
        let count = larder_allocations_end()
        return count < 0 ? nil : count
    }
}
