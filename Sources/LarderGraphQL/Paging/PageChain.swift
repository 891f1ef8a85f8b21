/// How the pages of one list follow each other, in the terms of the cache: by field keys, without a
/// schema or an operation.
package struct PageChain: Sendable, Hashable, Codable {
    /// One direction.
    package struct Way: Sendable, Hashable, Codable {
        /// The text of a page's field key up to the JSON of where the page begins, and after it.
        package var before: String
        package var after: String
        /// Whether that JSON is a text even where the page says a number.
        package var isText: Bool
        /// The field of the page whose object says what follows; nil where the page says it itself.
        package var info: String?
        /// The field that says whether another page follows; nil where the position alone says it.
        package var has: String?
        /// The field that says where that page begins.
        package var position: String
    }

    /// The field key of the page that the operation itself asks for.
    package var first: String
    /// The field of a page that has its elements; nil where the page is the list itself.
    package var list: String?
    package var next: Way?
    package var previous: Way?
    /// The field keys that lead from the root of all queries to the object whose pages these are; nil where it is the
    /// root.
    package var path: [String]?
    /// What the elements are, where each only has the object.
    package var edge: Edge?
    /// Where pages do not say what follows.
    package var numbers: Numbers?

    /// An element that has its object in a field.
    package struct Edge: Sendable, Hashable, Codable {
        package var node: String
        /// The type of new ones; nil where an edge says more than its object.
        package var type: String?
    }

    /// Pages that are asked for by a number.
    package struct Numbers: Sendable, Hashable, Codable {
        package var steps: PageSteps
        /// Of the page that the operation itself asks for.
        package var first: Int64
        /// The text of a page's field key up to its number, and after it.
        package var before: String
        package var after: String

        package func key(at number: Int64) -> String { "\(before)\(number)\(after)" }
    }

    /// Whether its lists are lists of the objects, whose length nothing depends on.
    package var isPlain: Bool { edge == nil && numbers == nil }
}

/// Where a page stands in a list whose pages do not say what follows.
package struct PagePlace: Sendable, Hashable {
    package var chain: PageChain
    package var number: Int64

    package init(chain: PageChain, number: Int64) { (self.chain, self.number) = (chain, number) }

    /// The page's field key.
    package var key: String {
        guard let numbers = chain.numbers, number != numbers.first else { return chain.first }
        return numbers.key(at: number)
    }
}

/// How pages follow each other that say nothing of it: by how many elements come before, or by their numbers.
package struct PageSteps: Sendable, Hashable, Codable {
    /// Whether a page's number is that of the elements before it.
    package var countsElements: Bool
    /// How many elements a full page has; nil where the server alone decides.
    package var size: Int?

    package init(countsElements: Bool, size: Int?) { (self.countsElements, self.size) = (countsElements, size) }

    /// The number of the page after a page; nil where that is the last: it is not full.
    ///
    /// - Parameter count: The elements of the page. What was put into it since it came does not move the next one.
    package func next(after number: Int64, _ count: Int) -> Int64? {
        guard count > 0, count >= size ?? 1 else { return nil }
        let (next, isTooLarge) = number.addingReportingOverflow(countsElements ? Int64(min(count, size ?? count)) : 1)
        return isTooLarge || next > Int32.max ? nil : next
    }

    /// The number of the page before a page; nil where that is the first.
    package func previous(before number: Int64, _ count: Int) -> Int64? {
        guard number > (countsElements ? 0 : 1) else { return nil }
        return countsElements ? max(0, number - Int64(size ?? max(count, 1))) : number - 1
    }
}

extension PageChain.Way {
    /// The field key of the page that begins at a text.
    package func key(at position: String) -> String {
        var json: [UInt8] = []
        appendJSONString(position, to: &json)
        return before + String(decoding: json, as: UTF8.self) + after
    }

    /// The field key of the page that begins at a number.
    package func key(at position: Int64) -> String {
        isText ? key(at: "\(position)") : "\(before)\(position)\(after)"
    }
}
