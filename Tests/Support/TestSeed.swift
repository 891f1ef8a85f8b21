import Foundation

/// The seeds of tests that try random cases.
///
/// A test tries the same cases in every run, so that a failure comes of the change that was made. The environment asks
/// for others: `LARDER_SEED=random` for new ones, and `LARDER_SEED` with a number for those of a seed that a failure
/// named.
package enum TestSeed {
    private static let named = ProcessInfo.processInfo.environment["LARDER_SEED"]

    /// A seed from 1 to 2^40.
    ///
    /// - Parameters:
    ///   - purpose: What it is for; another purpose has another seed.
    ///   - index: Which of several it is.
    package static func of(_ purpose: String, _ index: Int = 0) -> UInt64 {
        if let number = named.flatMap(UInt64.init) { return number }
        if named == "random" { return .random(in: 1...1 << 40) }
        var numbers = SeededNumbers(seed: UInt64(truncatingIfNeeded: index), purpose)
        return (numbers.next() >> 24) + 1
    }
}
