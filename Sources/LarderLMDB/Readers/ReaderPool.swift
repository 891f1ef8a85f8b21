/// The read transactions of an environment that are not in use, as a stack, and how many are.
struct ReaderPool {
    enum Answer {
        case kept(ReaderSlot)
        /// None is kept, but there may be one more.
        case roomForOne
        case full
        case closed
    }

    let limit: Int
    private var idle: ReaderSlot?
    private var idleCount = 0
    private(set) var inUse = 0
    private(set) var isClosed = false

    init(limit: Int) { self.limit = limit }

    /// Counts one more in use, unless the answer is `full` or `closed`.
    @inline(__always)
    mutating func take() -> Answer {
        if isClosed { return .closed }
        if let slot = idle {
            idle = slot.next
            slot.next = nil
            idleCount -= 1
            inUse += 1
            return .kept(slot)
        }
        guard inUse < limit else { return .full }
        inUse += 1
        return .roomForOne
    }

    /// Takes a slot back, or the room for one that could not be made.
    @inline(__always)
    mutating func give(_ slot: ReaderSlot?) {
        inUse -= 1
        guard let slot else { return }
        slot.next = idle
        idle = slot
        idleCount += 1
    }

    /// Refuses everything from now on.
    mutating func close() { isClosed = true }

    /// Lets go of every slot that is not in use.
    mutating func drain() {
        // One at a time: a long chain must not be released recursively.
        while let slot = idle {
            idle = slot.next
            slot.next = nil
        }
        idleCount = 0
    }
}
