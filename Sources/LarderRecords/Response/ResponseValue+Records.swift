/// The objects of a list that a cache gave, by the numbers of their records.
extension ResponseValue {
    /// How many elements the list has, with those that are no more and that it goes without.
    package var storedCount: Int { cell.kind == .list ? Int(cell.count) + cell.leftOut : 0 }

    /// The objects of a list without its nulls.
    ///
    /// - Parameters:
    ///   - node: The field of each element that is the object; nil where the element is.
    ///   - hidden: Which of them are left out, by their places among the others; in ascending order.
    package func objects(under node: String?, without hidden: [Int] = []) -> [ResponseValue] {
        var found: [ResponseValue] = []
        var (place, rest) = (0, hidden[...])
        found.reserveCapacity(cell.kind == .list ? Int(cell.count) : 0)
        forEachObject(under: node) { object in
            if rest.first == place {
                rest = rest.dropFirst()
            } else {
                found.append(ResponseValue(buffer: buffer, trusted: object))
            }
            place += 1
        }
        return found
    }

    /// The records of the same objects. An object has the same number in all answers from one generation of a cache,
    /// and no other object has it; 0 where the response does not come from a cache.
    package func records(under node: String?) -> [UInt64] {
        var found: [UInt64] = []
        found.reserveCapacity(cell.kind == .list ? Int(cell.count) : 0)
        forEachObject(under: node) { found.append(buffer.record(of: $0) ?? 0) }
        return found
    }

    @inline(__always)
    private func forEachObject(under node: String?, _ body: (ResponseCell) -> Void) {
        guard cell.kind == .list else { return }
        for index in 0..<Int(cell.count) {
            var element = buffer.cell(at: cell.offset + index * ResponseCell.size)
            if let node {
                guard element.kind == .object, let place = buffer.shape(element).position(of: node) else { continue }
                element = buffer.cell(at: element.offset + place * ResponseCell.size)
            }
            if element.kind != .null, element.kind != .absent { body(element) }
        }
    }
}
