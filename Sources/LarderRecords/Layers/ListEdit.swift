package import LarderGraphQL

/// A change to one list of objects, as data: the same for an optimistic layer and for the answer.
///
/// A list that the cache does not know, or that is not one of objects with identity, stays as it is.
package struct ListEdit: Sendable, Hashable {
    package enum Place: Sendable, Hashable {
        case start, end
        /// Before the first element whose field, by its field key, is greater than the object's; at the end where there
        /// is none. Numbers are in the order of their values, texts in that of their bytes.
        case ascending(field: String)
        /// Before the first element whose field is less than the object's.
        case descending(field: String)
    }

    package enum Action: Sendable, Hashable {
        /// Nothing happens if the object is in the list already, or is not in the cache.
        case insert(key: String, at: Place)
        case remove(key: String)
    }

    /// The object whose field the list is, or the root of all queries.
    package let owner: RecordCache.Root
    /// The list's field key: its name, or `name({"argument":value})`.
    package let field: String
    package let action: Action
    /// The list is all pages that follow each other, of which `field` is the first; nil where it is `field` itself.
    package let pages: PageChain?

    package init(
        _ owner: RecordCache.Root = .query, field: String, _ action: Action, pages: PageChain? = nil
    ) {
        self.owner = owner
        self.field = field
        self.action = action
        self.pages = pages
    }
}
