/// An array whose copies share what they have in common: appending to a copy costs little, however long it is.
package struct SharedList<Element> {
    private static var pieceSize: Int { 256 }
    /// All but the last are full.
    private var pieces: [[Element]] = []
    package private(set) var count = 0

    package init() {}

    package init(_ elements: some Sequence<Element>) {
        for element in elements { append(element) }
    }

    package var isEmpty: Bool { count == 0 }

    package subscript(index: Int) -> Element { pieces[index / Self.pieceSize][index % Self.pieceSize] }

    /// - Complexity: O(1) while there is no copy; otherwise O(p) in the pieces, of 256 elements each.
    package mutating func append(_ element: Element) {
        if count % Self.pieceSize == 0 { pieces.append([]) }
        pieces[pieces.count - 1].append(element)
        count += 1
    }
}

extension SharedList: Sendable where Element: Sendable {}

extension SharedList where Element: AnyObject {
    /// Whether the first elements are all those of another list.
    ///
    /// - Complexity: O(p) in the pieces that both have in common, O(n) in the others.
    func begins(with other: Self) -> Bool {
        guard other.count <= count else { return false }
        return zip(pieces, other.pieces).allSatisfy { own, others in
            // Safe: nothing is read through the addresses, which are compared while both arrays are lent.
            let isShared = unsafe own.withUnsafeBufferPointer { own in
                unsafe others.withUnsafeBufferPointer { unsafe own.baseAddress == $0.baseAddress }
            }
            return isShared || zip(own, others).allSatisfy { $0 === $1 }
        }
    }
}
