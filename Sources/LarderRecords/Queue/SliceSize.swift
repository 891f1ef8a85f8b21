/// How much a long work does in one of its short writes: as much as the machine and its disk take in about two slices.
/// The commit counts, which no look at the clock within the write can see coming. It begins with little: how much a write
/// costs depends on how far what it changes lies apart.
struct SliceSize {
    private(set) var count: Int
    private let greatest: Int
    private let time: Duration
    private static let least = 16
    private static let first = 128

    /// - Parameters:
    ///   - time: How long a write may take, roughly.
    ///   - greatest: Of things that a write deals with.
    init(for time: Duration, atMost greatest: Int) {
        (self.time, self.greatest) = (time, greatest)
        count = min(greatest, Self.first)
    }

    /// Takes in how long a write of `count` took, the wait for its turn included: others wait then as well.
    mutating func took(_ elapsed: Duration) {
        if elapsed > time * 5 / 2 {
            count = min(max(count / 2, Self.least), greatest)
        } else if elapsed < time * 3 / 2 {
            count = min(count * 2, greatest)
        }
    }
}
