/// Which pages of a file were claimed, by a tree or by the list of free pages. A page is claimed once.
struct PageMap {
    private let lastPage: UInt64
    /// A bit for each page that the file holds.
    private var bits: [UInt64]
    private let heldPages: UInt64
    /// Free pages past the end of the file, which were never written.
    private var beyond: [UInt64] = []

    /// - Parameter heldPages: how many pages the file is long.
    init(lastPage: UInt64, heldPages: UInt64) {
        self.lastPage = lastPage
        self.heldPages = min(heldPages, lastPage + 1)
        bits = Array(repeating: 0, count: Int(self.heldPages / 64) + 1)
        bits[0] = 0b11
    }

    enum Answer { case claimed, claimedTwice, outOfRange, beyondFile }

    @inline(__always)
    mutating func use(_ page: UInt64) -> Answer {
        guard page > 1, page <= lastPage else { return .outOfRange }
        guard page < heldPages else { return .beyondFile }
        return set(page)
    }

    @inline(__always)
    mutating func free(_ page: UInt64) -> Answer {
        guard page > 1, page <= lastPage else { return .outOfRange }
        guard page < heldPages else {
            beyond.append(page)
            return .claimed
        }
        return set(page)
    }

    @inline(__always)
    private mutating func set(_ page: UInt64) -> Answer {
        let bit = UInt64(1) << (page & 63)
        let index = Int(page >> 6)
        guard bits[index] & bit == 0 else { return .claimedTwice }
        bits[index] |= bit
        return .claimed
    }

    /// A page past the end of the file that is free twice.
    mutating func repeatedBeyond() -> UInt64? {
        beyond.sort()
        return zip(beyond, beyond.dropFirst()).first { $0 == $1 }?.0
    }
}
