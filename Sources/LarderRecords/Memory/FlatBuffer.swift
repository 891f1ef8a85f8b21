import CFiles

/// Memory for plain values that has one owner and is freed with it: what arrays would check on every access, and copy
/// to grow, in the loops that parse, read and write records.
///
/// Safe: the memory has one owner, which this is; a place in it is checked by an assertion wherever it is used, so that
/// debug builds and tests find an index that a release build would follow. What `elements` gives must not outlive the
/// owner or the next `resize`.
///
/// `@unchecked Sendable`: it changes through `mutating` functions alone, which the compiler lets one thread use.
@safe struct FlatBuffer<Element: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
    private(set) var start: UnsafeMutablePointer<Element>?
    private(set) var count = 0

    /// The memory is not initialized: every place is stored before it is loaded.
    init(count: Int = 0) {
        guard resize(to: count) else { Self.endForWantOfMemory(count) }
    }

    init(_ array: [Element]) {
        self.init(count: array.count)
        unsafe array.withUnsafeBufferPointer { array in
            guard let source = array.baseAddress, let start = unsafe start else { return }
            unsafe start.initialize(from: source, count: array.count)
        }
    }

    deinit { unsafe larder_free(start) }

    var indices: Range<Int> { 0..<count }

    @inline(__always)
    subscript(index: Int) -> Element {
        get {
            assert(index >= 0 && index < count, "index \(index) of \(count)")
            return unsafe start.unsafelyUnwrapped[index]
        }
        set {
            assert(index >= 0 && index < count, "index \(index) of \(count)")
            unsafe start.unsafelyUnwrapped[index] = newValue
        }
    }

    var elements: UnsafeBufferPointer<Element> { unsafe UnsafeBufferPointer(start: start, count: count) }

    /// Some of the elements, which must not outlive the owner either.
    @inline(__always)
    subscript(range: Range<Int>) -> UnsafeBufferPointer<Element> {
        assert(range.lowerBound >= 0 && range.upperBound <= count, "\(range) of \(count)")
        return unsafe UnsafeBufferPointer(start: start.map { unsafe $0 + range.lowerBound }, count: range.count)
    }

    /// Makes room for more or fewer elements, which keep their places: the system moves pages, and not bytes, where
    /// there are many. False where there is no memory, and nothing has changed.
    mutating func resize(to wanted: Int) -> Bool {
        assert(wanted >= 0)
        guard wanted != count else { return true }
        guard wanted > 0 else {
            unsafe larder_free(start)
            unsafe (start, count) = (nil, 0)
            return true
        }
        let (size, isLarge) = wanted.multipliedReportingOverflow(by: MemoryLayout<Element>.stride)
        guard !isLarge, let memory = unsafe larder_reallocate(start, size) else { return false }
        // `realloc` aligns for every type, and what was there was of this one.
        unsafe start = unsafe memory.bindMemory(to: Element.self, capacity: wanted)
        count = wanted
        return true
    }

    /// Swift's own collections end the process when memory is exhausted, and so does what cannot be thrown from.
    static func endForWantOfMemory(_ count: Int) -> Never {
        fatalError("no memory for \(count) values of \(MemoryLayout<Element>.stride) bytes")
    }
}

/// Bytes that hold numbers and small structures at offsets.
extension FlatBuffer where Element == UInt8 {
    @inline(__always)
    private func place(_ offset: Int, _ size: Int) -> UnsafeMutableRawPointer {
        assert(offset >= 0 && size >= 0 && offset + size <= count, "\(size) bytes at \(offset) of \(count)")
        return unsafe UnsafeMutableRawPointer(start.unsafelyUnwrapped) + offset
    }

    @inline(__always)
    func load<Value: BitwiseCopyable>(at offset: Int, as type: Value.Type) -> Value {
        unsafe place(offset, MemoryLayout<Value>.size).load(as: type)
    }

    @inline(__always)
    mutating func store<Value: BitwiseCopyable>(_ value: Value, at offset: Int) {
        unsafe place(offset, MemoryLayout<Value>.size).storeBytes(of: value, as: Value.self)
    }

    @inline(__always)
    mutating func copy(_ source: UnsafeRawBufferPointer, to offset: Int) {
        guard let from = source.baseAddress, source.count > 0 else { return }
        unsafe place(offset, source.count).copyMemory(from: from, byteCount: source.count)
    }

    /// - Parameter body: Writes at most `size` bytes, and answers how many.
    mutating func write(at offset: Int, upTo size: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Int) -> Int {
        let written = unsafe body(place(offset, size).assumingMemoryBound(to: UInt8.self))
        assert(written <= size)
        return written
    }

    @inline(__always)
    mutating func clear(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        unsafe place(range.lowerBound, range.count).initializeMemory(as: UInt8.self, repeating: 0, count: range.count)
    }
}

@inline(__always)
func hasSameBytes(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int) -> Bool {
    unsafe larder_compare(left, right, count) == 0
}

@inline(__always)
func hasSameBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let first = left.baseAddress, let second = right.baseAddress else { return true }
    return unsafe hasSameBytes(first, second, count: left.count)
}
