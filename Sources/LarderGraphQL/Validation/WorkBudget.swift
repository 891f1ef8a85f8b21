/// Steps that a computation may still take.
struct WorkBudget {
    private(set) var left: Int

    init(_ steps: Int) { left = steps }

    var isExhausted: Bool { left <= 0 }

    /// Takes steps; false where there were not enough.
    mutating func spend(_ steps: Int) -> Bool {
        left = left > steps ? left - steps : 0
        return left > 0
    }
}
