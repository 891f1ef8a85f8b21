public import LarderGraphQL
public import LarderRecords

/// Goes from page to page in the way of a program's own, where a server's lists are neither token lists, nor Relay
/// connections, nor lists by offset or by number.
///
/// ```swift
/// let merger = PageMerger(elements: ["feed", "stories"]) { page, variables in
///     guard let oldest = page["feed"]?["stories"]?.elements.last?["time"]?.int else { return nil }
///     return ["before": .int(oldest)]
/// }
/// try await app.pages(feed, merger: merger).all()
/// ```
public struct PageMerger: Sendable {
    /// Works out where a neighbour of a page begins. It must depend on nothing but what it is given.
    ///
    /// - Parameters:
    ///   - page: The page, as the cache has it.
    ///   - variables: By which the page was asked for.
    /// - Returns: The variables that differ for the neighbour; nil where there is none.
    public typealias Step = @Sendable (_ page: Response, _ variables: [String: Value]) -> [String: Value]?

    let elements: [String]
    let next: Step
    let previous: Step?

    /// - Parameters:
    ///   - elements: The response keys that lead from the root of the answer to the list of the page's objects.
    ///   - previous: Where the page before a page begins; nil where lists go forward only. It is asked about the page
    ///     that the operation itself asks for, and about pages to which it has led.
    ///   - next: Where the page after a page begins.
    public init(elements: [String], previous: Step? = nil, next: @escaping Step) {
        (self.elements, self.previous, self.next) = (elements, previous, next)
    }
}
