extension Partition {
    /// The pages of the one list that an operation asks for.
    ///
    /// A `@fieldPolicy` with `paginationArgs`, or `Schema.setPagination`, says how the list's field goes from page to
    /// page: see <doc:Paging>. The arguments that choose a page must be variables of the operation. Where it leaves the
    /// size of a page out, the largest that the policy allows is asked for.
    ///
    /// - Parameters:
    ///   - operation: A query.
    ///   - options: Of every page's fetch.
    ///   - merger: Goes from page to page in place of a policy, where the server's lists are of a kind of their own.
    /// - Throws: `.operation` where the operation asks for no list of pages, or not for what leads to the next one;
    ///   `.variables` for a page that is larger than the policy allows; `.syntax`, `.parked`.
    public func pages(
        _ operation: GraphQLOperation, options: FetchOptions = FetchOptions(), merger: PageMerger? = nil
    ) throws(LarderError) -> Pages {
        try core.requireCurrent()
        return try Pages(core.withRealIDs(operation), self, options, merger)
    }

    /// As `pages` of an operation, for a typed one; each ``Page/decode(_:)`` says the type of the objects.
    public func pages(
        _ operation: some TypedOperation, options: FetchOptions = FetchOptions(), merger: PageMerger? = nil
    ) throws(LarderError) -> Pages {
        try pages(operation.operation, options: options, merger: merger)
    }
}
