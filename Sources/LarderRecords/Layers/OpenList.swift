import LarderGraphQL
import LarderLMDB

/// A list of objects that is being edited: taken out of its record once, for any number of edits.
struct OpenList {
    let owner: RecordID
    let field: FieldID
    /// As it was when the list was taken out of it; its bytes must stay until the list is encoded.
    let record: RecordView
    /// 0 for null.
    private(set) var elements: [RecordID]
    private(set) var isChanged = false
    /// The elements that are objects, from the second edit on.
    private var members: Set<RecordID>?
    private var order: ListOrder?
    /// By what an object was put in its place last.
    private var lastOrder: (field: FieldID, isAscending: Bool)?

    /// Nil where the record has no list of objects there.
    init?(
        of owner: RecordID, _ field: FieldID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        guard let record = try generation.record(owner, transaction),
            let value = try generation.value(of: field, in: record, owner, transaction),
            let elements = try value.payload.references(in: value.word)
        else { return nil }
        (self.owner, self.field, self.record, self.elements) = (owner, field, record, elements)
    }

    mutating func apply(
        _ action: ListEdit.Action, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        switch action {
        case .insert(let key, let place):
            guard let object = try generation.tables.record(of: key, transaction), !contains(object),
                let view = try generation.record(object, transaction), !view.isTombstone
            else { return }
            let index = try index(for: object, at: place, generation, transaction)
            elements.insert(object, at: index)
            members?.insert(object)
        case .remove(let key):
            guard let object = try generation.tables.record(of: key, transaction), contains(object) else { return }
            elements.removeAll { $0 == object }
            members?.remove(object)
            order = nil
        }
        if isChanged, members == nil { members = Set(elements) }
        isChanged = true
    }

    /// Objects are put in their places by values that may be different from now on.
    ///
    /// - Parameter isChanged: Of which records.
    mutating func forgetOrder(where isChanged: (Set<RecordID>) -> Bool) {
        if order != nil, let members, isChanged(members) { order = nil }
    }

    private func contains(_ object: RecordID) -> Bool { members?.contains(object) ?? elements.contains(object) }

    private mutating func index(
        for object: RecordID, at place: ListEdit.Place, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int {
        let (name, isAscending): (String, Bool)
        switch place {
        case .start:
            order = nil
            return 0
        case .end:
            order = nil
            return elements.count
        case .ascending(let field): (name, isAscending) = (field, true)
        case .descending(let field): (name, isAscending) = (field, false)
        }
        guard let field = try generation.names.lookUp(name, transaction, generation.tables),
            let own = try generation.orderedValue(of: field, in: object, transaction)
        else {
            order = nil
            return elements.count
        }
        defer { lastOrder = (field, isAscending) }
        if order?.field != field || order?.isAscending != isAscending {
            order = nil
            guard lastOrder?.field == field, lastOrder?.isAscending == isAscending else {
                return try firstIndex(beyond: own, isAscending, field, generation, transaction)
            }
            // It is not the last either, perhaps: from now on the elements' values are kept.
            var new = ListOrder(field, isAscending: isAscending)
            for element in elements {
                new.append(
                    element == 0 ? nil : try generation.orderedValue(of: field, in: element, transaction))
            }
            order = new
            members = members ?? Set(elements)
        }
        return order?.insert(own) ?? elements.count
    }

    private func firstIndex(
        beyond own: OrderedValue, _ isAscending: Bool, _ field: FieldID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int {
        for (index, element) in elements.enumerated() where element != 0 {
            guard let other = try generation.orderedValue(of: field, in: element, transaction) else { continue }
            if isAscending ? own.isLess(than: other) : other.isLess(than: own) { return index }
        }
        return elements.count
    }
}

/// The elements of a list by one of their fields: where an object belongs is found without looking at each.
///
/// For each kind of value, which are compared among themselves alone or by their `Double`s, and each place in the list:
/// the greatest value up to there (the least, where the list descends). So the first element beyond a value is found by
/// halving, in whatever order the elements are.
struct ListOrder {
    let field: FieldID
    let isAscending: Bool
    private var count = 0
    private var ints = Extremes<Int64>()
    private var floats = Extremes<Double>()
    private var texts = Extremes<[UInt8]>()

    init(_ field: FieldID, isAscending: Bool) {
        self.field = field
        self.isAscending = isAscending
    }

    /// Takes in the last element's value.
    mutating func append(_ value: OrderedValue?) { insert(value, at: count) }

    /// Takes in a value before the first that is beyond it, and answers where that is.
    mutating func insert(_ own: OrderedValue) -> Int {
        let isAscending = isAscending
        func isBeyond(_ other: OrderedValue) -> Bool {
            isAscending ? own.isLess(than: other) : other.isLess(than: own)
        }
        let index =
            switch own {
            case .int, .float:
                min(
                    ints.firstIndex(count) { isBeyond(.int($0)) }, floats.firstIndex(count) { isBeyond(.float($0)) })
            case .text: texts.firstIndex(count) { isBeyond(.text($0)) }
            }
        insert(own, at: index)
        return index
    }

    private mutating func insert(_ value: OrderedValue?, at index: Int) {
        let isAscending = isAscending
        func isBefore<Value>(_ less: (Value, Value) -> Bool, _ left: Value, _ right: Value) -> Bool {
            isAscending ? less(left, right) : less(right, left)
        }
        var (int, float, text): (Int64?, Double?, [UInt8]?) = (nil, nil, nil)
        switch value {
        case .int(let value): int = value
        case .float(let value): float = value
        case .text(let value): text = value
        case nil: break
        }
        ints.insert(int, at: index, count) { isBefore(<, $0, $1) }
        floats.insert(float, at: index, count) { isBefore(<, $0, $1) }
        texts.insert(text, at: index, count) { left, right in
            isBefore({ $0.lexicographicallyPrecedes($1) }, left, right)
        }
        count += 1
    }

    private struct Extremes<Value> {
        /// Empty while no element has a value of this kind; nil up to the first that has.
        private var values: [Value?] = []

        /// The first place up to which there is a value beyond; `count` where there is none.
        func firstIndex(_ count: Int, _ isBeyond: (Value) -> Bool) -> Int {
            guard !values.isEmpty else { return count }
            var (low, high) = (0, count)
            while low < high {
                let middle = (low + high) / 2
                if values[middle].map(isBeyond) ?? false { high = middle } else { low = middle + 1 }
            }
            return low
        }

        mutating func insert(_ value: Value?, at index: Int, _ count: Int, _ isBefore: (Value, Value) -> Bool) {
            if values.isEmpty {
                if value == nil { return }
                values = Array(repeating: nil, count: count)
            }
            values.insert(index > 0 ? values[index - 1] : nil, at: index)
            guard let value else { return }
            for place in index..<values.count {
                if let known = values[place], !isBefore(known, value) { break }
                values[place] = value
            }
        }
    }
}

/// A value by which objects are put in order.
enum OrderedValue {
    case int(Int64)
    case float(Double)
    case text([UInt8])

    /// False also where the values are of different kinds.
    func isLess(than other: OrderedValue) -> Bool {
        switch (self, other) {
        case (.int(let left), .int(let right)): left < right
        case (.int(let left), .float(let right)): Double(left) < right
        case (.float(let left), .int(let right)): left < Double(right)
        case (.float(let left), .float(let right)): left < right
        case (.text(let left), .text(let right)): left.lexicographicallyPrecedes(right)
        default: false
        }
    }
}

extension Generation {
    /// The value of a field as it is stored; nil where the record does not have it.
    func value(
        of field: FieldID, in record: RecordView, _ id: RecordID,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (word: ValueWord, payload: PayloadView)? {
        guard record.isSplit else { return record.value(of: field).map { ($0, record.payload) } }
        return try splitField(SplitFieldKey(record: id, field: field), transaction).map { ($0.word, $0) }
    }

    /// The value by which an object is put in order.
    ///
    /// Safe: texts are copied while the transaction lasts to which they belong.
    func orderedValue(
        of field: FieldID, in id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> OrderedValue? {
        let found = try record(id, transaction)
        unsafe try transaction.demand?.note(met: found?.bytes, isInOverlay: transaction.overlay?.record(id) != nil)
        guard let record = found,
            let (word, payload) = try value(of: field, in: record, id, transaction)
        else { return nil }
        switch word.tag {
        case .smallInt: return .int(word.smallInt)
        case .int: return .int(Int64(bitPattern: try payload.eightBytes(word)))
        case .float: return .float(Double(bitPattern: try payload.eightBytes(word)))
        case .string: return unsafe .text(Array(try payload.text(word)))
        case .farString:
            var heap = TextHeap()
            return unsafe .text(Array(try heap.text(at: payload.place(word), transaction, tables)))
        default: return nil
        }
    }
}

extension PayloadView {
    /// The elements of a list of references, 0 for a null among them; nil where the value is anything else.
    func references(in word: ValueWord) throws(DamagedRecord) -> [RecordID]? {
        guard word.tag == .list else { return nil }
        let list = try list(word)
        var elements: [RecordID] = []
        elements.reserveCapacity(list.count)
        for index in 0..<list.count {
            switch list[index].tag {
            case .null: elements.append(0)
            case .reference, .wideReference: elements.append(try record(list[index]))
            default: return nil
            }
        }
        return elements
    }
}
