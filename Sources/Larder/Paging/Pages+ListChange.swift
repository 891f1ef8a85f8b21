extension Pages {
    /// What a mutation that creates an object does to the whole list: see ``MutationOptions/listChanges``.
    ///
    /// The object goes to the page on which its place is. Where that is before or after what is loaded, it is not shown:
    /// it comes with its page. A list that has the object already stays as it is. On a page by
    /// offset or by number one object more is shown, and the next page stays where it is.
    ///
    /// - Parameters:
    ///   - key: The object's cache key; it may hold a temporary id.
    ///   - place: In the order of the list.
    ///
    /// - Throws: `.operation` for a list by offset without a limit, for one by a merger of the program's own, for one
    ///   whose elements have arguments, and for edges that are asked for more than their `node`, which only the server
    ///   knows: refresh these.
    /// - Complexity: Of a read: O(n) in the objects of the loaded pages, for each pending change.
    public func inserting(_ key: CacheKey, at place: ListChange.Place = .end) throws(LarderError) -> ListChange {
        .insert(key, into: "", at: place).applied(to: try list.changeableChain(takingIn: true))
    }

    /// What a mutation that deletes an object, or takes it out, does to the whole list. The parameter and the complexity
    /// are the same as of `inserting`, and so are the errors, but that edges of all kinds can go.
    public func removing(_ key: CacheKey) throws(LarderError) -> ListChange {
        .remove(key, from: "").applied(to: try list.changeableChain())
    }
}
