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
        /// Which of them are objects without identity.
        var parts: Set<RecordID>
        /// Of each element the object: the element itself, unless that is an edge.
        var objects: [RecordID]
    }

    /// What becomes of one page.
    struct Change {
        var page: Page
        var action: ListEdit.Action
        /// Where an object goes among the elements.
        var index = 0
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
        guard let walk = try PageWalk(chain, root, generation, transaction),
            let first = try walk.page(chain.first, transaction)
        else { return }
        var seen: Set<String> = [chain.first]
        pages = [first]
        var number = chain.numbers?.first ?? 0
        while let (key, next) = try walk.next(of: pages[pages.count - 1], number, transaction) {
            guard seen.insert(key).inserted, let page = try walk.page(key, transaction) else {
                isWholeAtEnd = false
                break
            }
            pages.append(page)
            number = next
        }
        var before = [first]
        number = chain.numbers?.first ?? 0
        while let (key, previous) = try walk.previous(of: before[before.count - 1], number, transaction) {
            guard seen.insert(key).inserted, let page = try walk.page(key, transaction) else {
                isWholeAtStart = false
                break
            }
            before.append(page)
            number = previous
        }
        pages = before.dropFirst().reversed() + pages
    }

    /// On which pages an edit changes the list, and how it changes them there.
    ///
    /// An object whose place is before or after what is loaded comes with its page.
    func changes(
        _ action: ListEdit.Action, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [Change] {
        switch action {
        case .remove(let key):
            guard let object = try generation.tables.record(of: key, transaction) else { return [] }
            return pages.filter { $0.objects.contains(object) }.map { Change(page: $0, action: action) }
        case .insert(let key, let place):
            guard let object = try generation.tables.record(of: key, transaction), let first = pages.first,
                let last = pages.last, !pages.contains(where: { $0.objects.contains(object) })
            else { return [] }
            let atEnd = Change(page: last, action: .insert(key: key, at: .end), index: last.elements.count)
            let end = isWholeAtEnd ? [atEnd] : []
            let (name, isAscending): (String, Bool)
            switch place {
            case .start: return isWholeAtStart ? [Change(page: first, action: action)] : []
            case .end: return end
            case .ascending(let field): (name, isAscending) = (field, true)
            case .descending(let field): (name, isAscending) = (field, false)
            }
            guard let field = try generation.names.lookUp(name, transaction, generation.tables),
                let own = try generation.orderedValue(of: field, in: object, transaction)
            else { return end }
            for (number, page) in pages.enumerated() {
                for (index, element) in page.objects.enumerated() where element != 0 {
                    guard let other = try generation.orderedValue(of: field, in: element, transaction),
                        isAscending ? own.isLess(than: other) : other.isLess(than: own)
                    else { continue }
                    return number == 0 && index == 0 && !isWholeAtStart
                        ? [] : [Change(page: page, action: action, index: index)]
                }
            }
            return end
        }
    }
}

extension RecordChanges {
    /// Removes the page that follows a page, where that is another one than before: it is of an earlier list.
    ///
    /// - Parameter changes: By which the page was stored.
    mutating func removePage(
        after place: PagePlace, changedIn changes: ChangeSet, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        guard let root = try generation.tables.record(of: CacheKey.queryRoot.text, transaction),
            let walk = try PageWalk(place.chain, root, generation, transaction),
            let page = try walk.page(place.key, transaction),
            changes.fields.contains(where: { change in
                // Elements without a key keep their records when others take their places.
                page.parts.contains(change.record)
                    || change.record == page.owner && [page.field, RecordField.any].contains(change.field)
            }),
            let next = try walk.next(of: page, place.number, transaction),
            let field = try generation.names.lookUp(next.key, transaction, generation.tables)
        else { return }
        try removeFields([field], of: walk.holder, generation, transaction)
    }
}

/// Goes from page to page in one snapshot.
private struct PageWalk {
    private let chain: PageChain
    private let generation: Generation
    /// The record that has the pages.
    let holder: RecordID
    /// The field of a page that has its elements; nil where the page is the list itself.
    private let list: FieldID?
    /// The field of an element that has its object.
    private let node: FieldID?

    /// Nil where the cache has nothing of the list.
    init?(
        _ chain: PageChain, _ root: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        (self.chain, self.generation) = (chain, generation)
        var holder = root
        for key in chain.path ?? [] {
            guard let field = try generation.names.lookUp(key, transaction, generation.tables),
                let next = try generation.object(in: field, of: holder, transaction)
            else { return nil }
            holder = next
        }
        self.holder = holder
        list = try chain.list.flatMap { name throws in
            try generation.names.lookUp(name, transaction, generation.tables)
        }
        node = try chain.edge.flatMap { edge throws in
            try generation.names.lookUp(edge.node, transaction, generation.tables)
        }
        if chain.list != nil, list == nil { return nil }
    }

    func page(
        _ key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> ChainedPages.Page? {
        guard let field = try generation.names.lookUp(key, transaction, generation.tables) else { return nil }
        var (owner, place) = (holder, field)
        if let list {
            guard let page = try generation.object(in: field, of: holder, transaction) else { return nil }
            (owner, place) = (page, list)
        }
        guard let (word, payload) = try generation.storedValue(of: place, in: owner, transaction),
            let (elements, parts) = try payload.elements(in: word)
        else { return nil }
        var objects = elements
        if chain.edge != nil {
            for (index, element) in elements.enumerated() where element != 0 {
                objects[index] = try node.flatMap { try generation.object(in: $0, of: element, transaction) } ?? 0
            }
        }
        return ChainedPages.Page(owner: owner, field: place, elements: elements, parts: parts, objects: objects)
    }

    /// The field key of the page to which a page leads, and its number; nil where it says that none follows, or says
    /// nothing.
    func next(
        of page: ChainedPages.Page, _ number: Int64, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (key: String, number: Int64)? {
        if let numbers = chain.numbers {
            return numbers.steps.next(after: number, page.elements.count).map { (numbers.key(at: $0), $0) }
        }
        guard let way = chain.next else { return nil }
        return try key(by: way, of: page, transaction).map { ($0, 0) }
    }

    func previous(
        of page: ChainedPages.Page, _ number: Int64, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (key: String, number: Int64)? {
        if let numbers = chain.numbers {
            return numbers.steps.previous(before: number, page.elements.count).map { (numbers.key(at: $0), $0) }
        }
        guard let way = chain.previous else { return nil }
        return try key(by: way, of: page, transaction).map { ($0, 0) }
    }

    private func key(
        by way: PageChain.Way, of page: ChainedPages.Page, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> String? {
        func field(_ name: String) throws -> FieldID? {
            try generation.names.lookUp(name, transaction, generation.tables)
        }
        var owner = page.owner
        if let info = try way.info.map(field) {
            guard let info, let found = try generation.object(in: info, of: owner, transaction) else { return nil }
            owner = found
        }
        if let has = try way.has.map(field) {
            guard let has, let (word, _) = try generation.storedValue(of: has, in: owner, transaction),
                word.tag == .yes
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

extension Generation {
    /// The value of a field; nil where the record is not there, is a tombstone, or does not have it.
    fileprivate func storedValue(
        of field: FieldID, in id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (word: ValueWord, payload: PayloadView)? {
        guard let record = try record(id, transaction), !record.isTombstone else { return nil }
        return try value(of: field, in: record, id, transaction)
    }

    /// The object that is the value of a field.
    fileprivate func object(
        in field: FieldID, of id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID? {
        guard let (word, payload) = try storedValue(of: field, in: id, transaction), word.tag?.isRecord ?? false
        else { return nil }
        return try payload.record(word)
    }
}

extension PayloadView {
    /// The elements of a list of objects, 0 for a null among them, and which of them are parts; nil where the value is
    /// anything else.
    fileprivate func elements(in word: ValueWord) throws(DamagedRecord) -> ([RecordID], parts: Set<RecordID>)? {
        guard word.tag == .list else { return nil }
        let list = try list(word)
        var elements: [RecordID] = []
        var parts: Set<RecordID> = []
        elements.reserveCapacity(list.count)
        for index in 0..<list.count {
            switch list[index].tag {
            case .null: elements.append(0)
            case .reference, .wideReference: elements.append(try record(list[index]))
            case .part, .widePart:
                let part = try record(list[index])
                elements.append(part)
                parts.insert(part)
            default: return nil
            }
        }
        return (elements, parts)
    }
}
