import LarderGraphQL
import LarderLMDB

/// The pages of a list that the cache has, in the list's order, taken out of their records.
///
/// A page whose record or list is not there ends the list: what follows it is not known to belong to it.
///
/// Safe: texts and elements are copied while the transaction lasts to which they belong.
struct ChainedPages {
    struct Page {
        var owner: RecordID
        var field: FieldID
        /// 0 for null.
        var elements: [RecordID]
    }

    private(set) var pages: [Page] = []
    /// Whether no page is known to come before the first.
    private var isWholeAtStart = true
    /// Whether no page follows the last.
    private var isWholeAtEnd = true

    /// - Complexity: O(n) in the objects of all pages.
    init(
        _ chain: PageChain, of root: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        guard let list = try generation.names.lookUp(chain.list, transaction, generation.tables) else { return }
        var seen: Set<String> = [chain.first]
        guard let first = try Self.page(chain.first, list, of: root, generation, transaction) else { return }
        pages = [first]
        var next = try chain.next.map { try Self.key(by: $0, of: first, generation, transaction) } ?? nil
        while let (way, key) = chain.next.flatMap({ way in next.map { (way, $0) } }) {
            guard seen.insert(key).inserted, let page = try Self.page(key, list, of: root, generation, transaction)
            else {
                isWholeAtEnd = false
                break
            }
            pages.append(page)
            next = try Self.key(by: way, of: page, generation, transaction)
        }
        var before: [Page] = []
        var previous = try chain.previous.map { try Self.key(by: $0, of: first, generation, transaction) } ?? nil
        while let (way, key) = chain.previous.flatMap({ way in previous.map { (way, $0) } }) {
            guard seen.insert(key).inserted, let page = try Self.page(key, list, of: root, generation, transaction)
            else {
                isWholeAtStart = false
                break
            }
            before.append(page)
            previous = try Self.key(by: way, of: page, generation, transaction)
        }
        pages = before.reversed() + pages
    }

    /// On which pages an edit changes the list, and how it changes them there.
    ///
    /// An object whose place is before or after what is loaded comes with its page.
    func edits(
        _ action: ListEdit.Action, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [(page: Page, action: ListEdit.Action)] {
        switch action {
        case .remove(let key):
            guard let object = try generation.tables.record(of: key, transaction) else { return [] }
            return pages.filter { $0.elements.contains(object) }.map { ($0, action) }
        case .insert(let key, let place):
            guard let object = try generation.tables.record(of: key, transaction), let first = pages.first,
                let last = pages.last, !pages.contains(where: { $0.elements.contains(object) })
            else { return [] }
            let end = isWholeAtEnd ? [(last, ListEdit.Action.insert(key: key, at: .end))] : []
            let (name, isAscending): (String, Bool)
            switch place {
            case .start: return isWholeAtStart ? [(first, action)] : []
            case .end: return end
            case .ascending(let field): (name, isAscending) = (field, true)
            case .descending(let field): (name, isAscending) = (field, false)
            }
            guard let field = try generation.names.lookUp(name, transaction, generation.tables),
                let own = try generation.orderedValue(of: field, in: object, transaction)
            else { return end }
            for (number, page) in pages.enumerated() {
                for (index, element) in page.elements.enumerated() where element != 0 {
                    guard let other = try generation.orderedValue(of: field, in: element, transaction),
                        isAscending ? own.isLess(than: other) : other.isLess(than: own)
                    else { continue }
                    return number == 0 && index == 0 && !isWholeAtStart ? [] : [(page, action)]
                }
            }
            return end
        }
    }

    private static func page(
        _ key: String, _ list: FieldID, of root: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Page? {
        guard let field = try generation.names.lookUp(key, transaction, generation.tables),
            let (word, payload) = try value(of: field, in: root, generation, transaction),
            [.reference, .wideReference, .part, .widePart].contains(word.tag)
        else { return nil }
        let id = try payload.record(word)
        guard let (elements, source) = try value(of: list, in: id, generation, transaction),
            let references = try source.references(in: elements)
        else { return nil }
        return Page(owner: id, field: list, elements: references)
    }

    private static func value(
        of field: FieldID, in id: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (word: ValueWord, payload: PayloadView)? {
        guard let record = try generation.record(id, transaction), !record.isTombstone else { return nil }
        return try generation.value(of: field, in: record, id, transaction)
    }

    /// The field key of the page to which a page leads; nil where it says that none follows, or says nothing.
    private static func key(
        by way: PageChain.Way, of page: Page, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> String? {
        func field(_ name: String) throws -> FieldID? {
            try generation.names.lookUp(name, transaction, generation.tables)
        }
        var owner = page.owner
        if let info = try way.info.map(field) {
            guard let info, let (word, payload) = try value(of: info, in: owner, generation, transaction),
                [.reference, .wideReference, .part, .widePart].contains(word.tag)
            else { return nil }
            owner = try payload.record(word)
        }
        if let has = try way.has.map(field) {
            guard let has, let (word, _) = try value(of: has, in: owner, generation, transaction), word.tag == .yes
            else { return nil }
        }
        guard let position = try field(way.position) else { return nil }
        switch try generation.orderedValue(of: position, in: owner, transaction) {
        case .int(let number): return way.key(at: number)
        case .text(let text): return text.isEmpty ? nil : way.key(at: String(decoding: text, as: UTF8.self))
        case .float, nil: return nil
        }
    }
}
