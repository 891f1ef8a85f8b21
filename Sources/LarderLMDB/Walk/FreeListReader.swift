/// Reads a list of free pages number by number: how many follow, then each, descending.
struct FreeListReader {
    private let capacity: Int
    /// How many are still to come; nil before the first number.
    private var left: UInt64?
    private var previous = UInt64.max

    /// - Parameter capacity: how many numbers the value has room for after the first.
    init(capacity: Int) { self.capacity = capacity }

    enum Number { case count, page, disorder }

    var isDone: Bool { left == 0 }

    @inline(__always)
    mutating func take(_ number: UInt64) -> Number {
        guard let left else {
            guard number <= UInt64(capacity) else { return .disorder }
            self.left = number
            return .count
        }
        guard number < previous else { return .disorder }
        previous = number
        self.left = left - 1
        return .page
    }
}
