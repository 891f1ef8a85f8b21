import CFiles

/// The key that the next one in a tree must exceed, or, after a branch's separator, must not be below.
///
/// Safe: its bytes are `WalkMemory`'s, which outlives it, and no more of a key is kept than they take.
@safe struct KeyOrder {
    private let isInteger: Bool
    private let bytes: UnsafeMutableRawBufferPointer
    private var count = 0
    private var integer: UInt64 = 0
    private var hasKey = false
    private var mayEqual = false

    /// - Parameter bytes: room for the greatest key.
    init(isInteger: Bool, bytes: UnsafeMutableRawBufferPointer) {
        self.isInteger = isInteger
        unsafe self.bytes = unsafe bytes
    }

    /// Whether a key may follow an earlier one in the same page, which is therefore not kept here.
    @inline(__always)
    func ascends(_ earlier: UnsafeRawBufferPointer, _ later: UnsafeRawBufferPointer) -> Bool {
        unsafe isInteger ? earlier.integerKey < later.integerKey : Self.compare(earlier, later) < 0
    }

    /// Whether a key may come next, after everything before.
    @inline(__always)
    func admits(_ key: UnsafeRawBufferPointer) -> Bool {
        guard hasKey else { return true }
        if isInteger {
            let next = unsafe key.integerKey
            return mayEqual ? integer <= next : integer < next
        }
        let difference = unsafe Self.compare(UnsafeRawBufferPointer(rebasing: bytes[..<count]), key)
        return mayEqual ? difference <= 0 : difference < 0
    }

    @inline(__always)
    func isLegal(_ key: UnsafeRawBufferPointer) -> Bool {
        isInteger ? key.count == 8 : key.count > 0 && key.count <= PageLayout.greatestKey
    }

    /// Keeps a key for the next; a separator may be equal to it.
    @inline(__always)
    mutating func keep(_ key: UnsafeRawBufferPointer, isSeparator: Bool) {
        hasKey = true
        mayEqual = isSeparator
        if isInteger {
            integer = unsafe key.integerKey
        } else {
            count = unsafe min(key.count, bytes.count)
            unsafe bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: key[..<count]))
        }
    }

    /// LMDB's order: bytes first, then length.
    @inline(__always)
    private static func compare(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
        let shared = min(one.count, other.count)
        if shared > 0, let a = one.baseAddress, let b = other.baseAddress {
            let difference = unsafe larder_compare(a, b, shared)
            if difference != 0 { return Int(difference) }
        }
        return one.count - other.count
    }
}
