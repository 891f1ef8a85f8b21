import LarderGraphQL

/// Puts responses to one operation together into one, which is stored at the cost of one: of many small ones, most of
/// the cost is that each is a response.
///
/// Nothing of a root is stored, so it serves mutations and subscriptions alone. No two of the responses have an object
/// in common, for then it would matter which came later.
///
/// Safe: the responses' own indices are moved by as much as stands before them in the tables.
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

    /// - Parameter entityCount: The most entities that will be in it.
    private init(_ layout: PlanLayout, entityCount: Int) {
        self.layout = layout
        met = EntityTable(capacity: entityCount)
    }

    /// So many at most become one: more would not make each cheaper.
    private static let limit = 128

    /// The responses in their order, put together where they follow each other.
    ///
    /// - Parameter responses: To one operation with the same variables, which is no query.
    /// - Complexity: O(n) in their size.
    static func joining(_ responses: [ParsedResponse]) -> [ParsedResponse] {
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

    /// False where the response has an object that is in it already, or cannot be put with others; then it is as it was.
    private mutating func append(_ response: ParsedResponse) -> Bool {
        guard let first = response.root else { return true }
        // Offsets of keys, and numbers of objects and fields, take 31 bits.
        guard response.unknownTypes.isEmpty, text.count + response.text.count < 1 << 31,
            keys.count + response.keys.count < 1 << 31
        else { return false }
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
            // A root is no object of the cache, also where it has an identity.
            if index == first { object.entity = -1 }
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
