import LarderGraphQL

/// Joins responses to one operation, so that they are stored as one: the cost of storing a small response is mostly
/// that of any response.
///
/// Only for mutations and subscriptions, whose roots are not stored. Responses that have an object in common are not
/// joined: the later one must be stored over the earlier one.
///
/// Safe: what a table lends is used in one call, during which nothing is appended, and a response outlives the call
/// that copies it. Each index is moved by the count that its table had before.
struct JoinedResponse: ~Copyable {
    private let layout: PlanLayout
    private var text = GrowingTable<UInt8>()
    private var keys = GrowingTable<UInt8>()
    private var objects = GrowingTable<ParsedObject>()
    private var entities = GrowingTable<ParsedEntity>()
    private var fields = GrowingTable<ParsedField>()
    private var items = GrowingTable<ParsedCell>()
    private var unanswered: Set<Int> = []
    private var root: Int?
    private var met: EntityTable
    /// Whether `met` has objects that were removed, so that nothing may be appended any more.
    private var isComplete = false

    /// - Parameter entityCount: The most entities that will be in it.
    private init(_ layout: PlanLayout, entityCount: Int) {
        self.layout = layout
        met = EntityTable(capacity: entityCount)
    }

    /// So many at most become one.
    private static let limit = 128
    /// So many bytes of text: a copy of what is large gains nothing.
    private static let sizeLimit = 1 << 20

    /// The responses in their order, joined as far as may be.
    ///
    /// - Parameter responses: Of one operation with equal variables, whose root is not stored.
    /// - Complexity: O(n) in their size; where each has an object of the one before, O(m) more for each of them in the
    ///   entities of the next `limit`.
    static func joining(_ responses: [ParsedResponse]) -> [ParsedResponse] {
        assert(responses.allSatisfy { $0.layout === responses[0].layout && !$0.layout.storesRoot })
        var joined: [ParsedResponse] = []
        var rest = responses[...]
        while let first = rest.first {
            let next = rest.prefix(limit)
            var draft = JoinedResponse(first.layout, entityCount: next.reduce(0) { $0 + $1.entities.count })
            var count = 0
            for response in next {
                guard draft.append(response) else { break }
                count += 1
            }
            joined.append(count > 1 ? draft.finish() : first)
            rest = rest.dropFirst(max(1, count))
        }
        return joined
    }

    /// - Returns: False where an earlier response has one of its objects, or where it cannot be joined with any. Then
    ///   nothing of it is appended, and nothing may be.
    private mutating func append(_ response: ParsedResponse) -> Bool {
        assert(!isComplete)
        guard let first = response.root else { return true }
        let size = max(text.count + response.text.count, keys.count + response.keys.count)
        guard size <= Self.sizeLimit, response.unknownTypes.isEmpty, response.objects[first].entity < 0 else {
            return false
        }
        let start = (
            text: text.count, keys: keys.count, objects: objects.count, entities: entities.count, items: items.count
        )
        unsafe keys.append(contentsOf: response.keys.elements)
        for index in response.entities.indices {
            let entity = response.entities[index]
            entities.append(
                ParsedEntity(
                    keyStart: entity.keyStart + Int32(start.keys), keyCount: entity.keyCount,
                    first: entity.first + Int32(start.objects)))
        }
        for index in response.objects.indices {
            var object = response.objects[index]
            object.fieldStart += Int32(fields.count)
            if object.entity >= 0 { object.entity += Int32(start.entities) }
            objects.append(object)
            guard object.entity >= 0 else { continue }
            let place = start.objects + index
            let earliest = unsafe met.first(
                like: place, objects.elements, entities.elements, UnsafeRawBufferPointer(keys.elements))
            guard earliest >= start.objects else {
                objects.removeLast(objects.count - start.objects)
                entities.removeLast(entities.count - start.entities)
                keys.removeLast(keys.count - start.keys)
                isComplete = true
                return false
            }
        }
        unsafe text.append(contentsOf: response.text.elements)
        for index in response.unanswered { unanswered.insert(index + fields.count) }
        for index in response.fields.indices {
            let field = response.fields[index]
            let cell = field.cell.moved(text: start.text, items: start.items, objects: start.objects)
            fields.append(ParsedField(field: field.field, cell: cell))
        }
        for index in response.items.indices {
            items.append(
                response.items[index].moved(text: start.text, items: start.items, objects: start.objects))
        }
        // The other roots have no identity and nothing holds them, so that they are not stored either.
        root = root ?? start.objects + first
        return true
    }

    private consuming func finish() -> ParsedResponse {
        ParsedResponse(
            layout: layout, text: text.take(), keys: keys.take(), objects: objects.take(), entities: entities.take(),
            fields: fields.take(), items: items.take(), unknownTypes: [], root: root, errors: [], extensions: [:],
            unanswered: unanswered)
    }
}

extension ParsedCell {
    /// The same value, where as much stands before its response's text, list elements and objects.
    fileprivate func moved(text: Int, items: Int, objects: Int) -> ParsedCell {
        var moved = self
        switch kind {
        case .string, .number, .json: moved.payload += UInt64(text)
        case .list: moved.payload += UInt64(items)
        case .object: moved.payload += UInt64(objects)
        case .absent, .null, .no, .yes, .int, .float: break
        }
        return moved
    }
}
