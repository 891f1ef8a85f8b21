/// Plain values one after the other, handed over where they stand.
///
/// An array that grows exists twice for a moment, and again when its elements are copied to where they stay: for an
/// answer of millions of objects that is most of the memory. This grows where it stands, and is given away as it is.
///
/// Safe: it owns the memory, and `elements` gives no more of it than was appended.
struct GrowingTable<Element: BitwiseCopyable>: ~Copyable {
    private var memory: FlatBuffer<Element>
    private(set) var count = 0

    init(capacity: Int = 0) { memory = FlatBuffer(count: capacity) }

    subscript(index: Int) -> Element {
        get {
            assert(index < count)
            return memory[index]
        }
        set {
            precondition(index >= 0 && index < count)
            memory[index] = newValue
        }
    }

    /// What is in it now; must not be used after the next change.
    var elements: UnsafeBufferPointer<Element> { unsafe memory[0..<count] }

    mutating func append(_ element: Element) {
        if count == memory.count { reserve(max(16, count + count / 2)) }
        memory[count] = element
        count += 1
    }

    mutating func append(contentsOf others: some RandomAccessCollection<Element>) {
        if memory.count - count < others.count { reserve(max(count + others.count, memory.count + memory.count / 2)) }
        for other in others {
            memory[count] = other
            count += 1
        }
    }

    mutating func removeLast(_ removed: Int) {
        precondition(removed >= 0 && removed <= count)
        count -= removed
    }

    /// Gives its memory away, cut to what is in it, and is empty then.
    mutating func take() -> FlatBuffer<Element> {
        reserve(count)
        count = 0
        var taken = FlatBuffer<Element>()
        swap(&taken, &memory)
        return taken
    }

    private mutating func reserve(_ wanted: Int) {
        guard memory.resize(to: wanted) else { FlatBuffer<Element>.endForWantOfMemory(wanted) }
    }
}
