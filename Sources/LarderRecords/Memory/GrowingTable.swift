import Foundation

/// Plain values one after the other, handed over where they stand.
///
/// An array that grows exists twice for a moment, and again when its elements are copied to where they stay: for an
/// answer of millions of objects that is most of the memory. This grows by `realloc`, which moves pages and not bytes
/// where there are many, and is given away as it is.
///
/// Safe since indices are checked against `count`, and the memory has one owner: this, until `take`.
struct GrowingTable<Element: BitwiseCopyable>: ~Copyable {
    private var start: UnsafeMutablePointer<Element>?
    private(set) var count = 0
    private var capacity = 0

    init(capacity: Int = 0) { reserve(capacity) }

    deinit { free(start) }

    subscript(index: Int) -> Element {
        get { elements[index] }
        set {
            precondition(index >= 0 && index < count)
            start?[index] = newValue
        }
    }

    /// What is in it now; must not be used after the next change.
    var elements: UnsafeBufferPointer<Element> { UnsafeBufferPointer(start: start, count: count) }

    mutating func append(_ element: Element) {
        if count == capacity { reserve(max(16, capacity + capacity / 2)) }
        start?.advanced(by: count).initialize(to: element)
        count += 1
    }

    mutating func append(contentsOf others: ArraySlice<Element>) {
        if capacity - count < others.count { reserve(max(count + others.count, capacity + capacity / 2)) }
        others.withUnsafeBufferPointer { others in
            guard let from = others.baseAddress, let start else { return }
            start.advanced(by: count).initialize(from: from, count: others.count)
        }
        count += others.count
    }

    /// Gives its memory away, cut to what is in it, and is empty then. To be freed by `release`.
    mutating func take() -> UnsafeBufferPointer<Element> {
        if count > 0 { reserve(count) }
        defer { (start, count, capacity) = (nil, 0, 0) }
        guard count > 0 else {
            free(start)
            return UnsafeBufferPointer(start: nil, count: 0)
        }
        return UnsafeBufferPointer(start: start, count: count)
    }

    static func release(_ taken: UnsafeBufferPointer<Element>) {
        free(UnsafeMutablePointer(mutating: taken.baseAddress))
    }

    private mutating func reserve(_ wanted: Int) {
        guard wanted > 0 else { return }
        guard let memory = realloc(start, wanted * MemoryLayout<Element>.stride) else {
            // As an array does.
            preconditionFailure("There is no memory for \(wanted) values")
        }
        start = memory.bindMemory(to: Element.self, capacity: wanted)
        capacity = wanted
    }
}
