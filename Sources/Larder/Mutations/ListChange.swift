import Foundation
public import LarderGraphQL
import LarderOperations
import LarderRecords

/// What a queued mutation does to a list of objects: seen at once, and made when the server has answered.
///
/// A list that the cache does not know stays unknown, and one that has the object already stays as it is.
public struct ListChange: Sendable, Hashable, Codable {
    /// Where an object goes in a list.
    public enum Place: Sendable, Hashable, Codable {
        /// Before all others, and after them.
        case start, end
        /// Before the first element whose field is greater.
        case ascending(field: FieldKey)
        /// Before the first element whose field is less.
        case descending(field: FieldKey)
    }

    private enum Action: Hashable, Codable {
        case insert(key: String, at: Place)
        case remove(key: String)
    }

    /// Nil for the root of all queries.
    private let owner: String?
    private let field: String
    private let action: Action
    /// Of a list that is several pages.
    private var pages: PageChain?

    /// Puts an object into a list.
    ///
    /// - Parameters:
    ///   - key: The object's cache key; it may hold a temporary id.
    ///   - field: The list, with the arguments that it was asked with.
    ///   - owner: The cache key of the object whose field it is; nil for the root of all queries.
    ///   - place: Where in the list the object goes.
    public static func insert(
        _ key: CacheKey, into field: FieldKey, of owner: CacheKey? = nil, at place: Place = .end
    ) -> ListChange {
        ListChange(owner: owner?.text, field: field.text, action: .insert(key: key.text, at: place))
    }

    /// Takes an object out of a list. The parameters are the same as of `insert`.
    public static func remove(_ key: CacheKey, from field: FieldKey, of owner: CacheKey? = nil) -> ListChange {
        ListChange(owner: owner?.text, field: field.text, action: .remove(key: key.text))
    }

    /// The same change to all pages of a list.
    func applied(to chain: PageChain) -> ListChange {
        var change = ListChange(owner: nil, field: chain.first, action: action)
        change.pages = chain
        return change
    }

    var edit: ListEdit {
        let root = owner.map { RecordCache.Root.object(key: $0) } ?? .query
        return switch action {
        case .insert(let key, let place):
            ListEdit(root, field: field, .insert(key: key, at: place.ofEdit), pages: pages)
        case .remove(let key): ListEdit(root, field: field, .remove(key: key), pages: pages)
        }
    }
}

extension ListChange.Place {
    fileprivate var ofEdit: ListEdit.Place {
        switch self {
        case .start: .start
        case .end: .end
        case .ascending(let field): .ascending(field: field.text)
        case .descending(let field): .descending(field: field.text)
        }
    }
}

extension [ListChange] {
    /// As they are kept with a mutation.
    var stored: [UInt8] {
        get throws(LarderError) {
            do { return [UInt8](try JSONEncoder().encode(self)) } catch {
                throw LarderError(.data, "The changes of lists cannot be stored", cause: error)
            }
        }
    }

    /// Of a stored mutation; none where it has none.
    init(_ mutation: Mutation) throws(LarderError) { self = try .init(mutation.content, of: mutation.id) }

    init(_ content: MutationContent, of mutation: UUID) throws(LarderError) {
        guard let stored = content.listEdits else {
            self = []
            return
        }
        do { self = try JSONDecoder().decode([ListChange].self, from: Data(stored)) } catch {
            throw LarderError(.data, "The changes of lists of mutation \(mutation) cannot be read", cause: error)
        }
    }
}
