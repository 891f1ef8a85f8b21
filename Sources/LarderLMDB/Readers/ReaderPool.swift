/// The read transactions of an environment that are not in use, as a stack, and how much of the environment is.
struct ReaderPool {
    enum Answer {
        case kept(ReaderSlot)
        /// None is kept, but there may be one more.
        case roomForOne
        case full
        case closed
        case broken
    }

    private let limit: Int
    private var idle: ReaderSlot?
    /// Readers in use.
    private var readers = 0
    /// Other calls under way that need the environment: a write transaction, a copy.
    private var pins = 0
    /// Other calls that look into the map: a write transaction, a copy.
    private var mapUsers = 0
    private(set) var isClosed = false
    /// Whether the map is gone, because it could not be moved.
    private var isBroken = false

    /// - Parameter limit: how many readers there may be.
    init(limit: Int) { self.limit = limit }

    /// Counts one more reader, unless the answer is `full` or `closed`.
    @inline(__always)
    mutating func take() -> Answer {
        if isClosed { return .closed }
        if isBroken { return .broken }
        if let slot = idle {
            idle = slot.next
            slot.next = nil
            readers += 1
            return .kept(slot)
        }
        guard readers < limit else { return .full }
        readers += 1
        return .roomForOne
    }

    /// Takes a slot back, or the room for one that could not be made. True where the environment can close now.
    @inline(__always)
    mutating func give(_ slot: ReaderSlot?) -> Bool {
        readers -= 1
        if let slot {
            slot.next = idle
            idle = slot
        }
        return isClosed && readers + pins == 0
    }

    /// Keeps the environment open; false where it is closed.
    mutating func pin() -> Bool {
        if isClosed || isBroken { return false }
        pins += 1
        return true
    }

    /// True where the environment can close now.
    mutating func unpin() -> Bool {
        pins -= 1
        return isClosed && readers + pins == 0
    }

    /// Whether a transaction of this process may look into the map now.
    var isMapInUse: Bool { readers + mapUsers > 0 }

    mutating func beginUsingMap() { mapUsers += 1 }

    mutating func endUsingMap() {
        assert(mapUsers > 0)
        mapUsers -= 1
    }

    /// Refuses everything from now on, for there is no map any more. The environment stays open for its owner to close.
    mutating func breakDown() { isBroken = true }

    /// Refuses everything from now on. True where the environment can close now; false also where it was closed.
    mutating func close() -> Bool {
        guard !isClosed else { return false }
        isClosed = true
        return readers + pins == 0
    }

    /// Takes back `close` while something still keeps the environment open; false where nothing does.
    mutating func reopen() -> Bool {
        guard isClosed, readers + pins > 0 else { return false }
        isClosed = false
        return true
    }

    /// Ends every reader that is not in use. One at a time: a chain must not be released recursively.
    mutating func drain() {
        while let slot = idle {
            idle = slot.next
            slot.next = nil
            slot.end()
        }
    }
}
