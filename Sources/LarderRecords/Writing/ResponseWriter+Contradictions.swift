import LarderGraphQL
import LarderLMDB

/// Whether an object without identity can be the one that is there: it is another one where a field that both have
/// differs, or its type does. References to entities are such fields, and so are parts, in which the same is asked.
///
/// Safe: the keys that are compared lie in `parsed`, which the writer keeps.
extension ResponseWriter {
    /// What remains to be compared: parts are as deep in each other as the plan, and need no stack of the thread's.
    private struct Pairs<Other> {
        var rest: [(object: Int, other: Other)]
    }

    // MARK: With what is stored

    /// Whether an object of the response is another one than a part that is stored.
    ///
    /// - Complexity: O(n) in what the response has of the object.
    mutating func contradicts(
        _ object: Int, stored: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        var pairs = Pairs(rest: [(object, stored)])
        while let (object, id) = pairs.rest.popLast() {
            guard let record = try generation.record(id, transaction) else { continue }
            if try record.type != typeID(of: object, transaction) { return true }
            for index in parsed.objects[object].fields where isStored(index) {
                let field = layout.fields[Int(parsed.fields[index].field)]
                let (key, _) = try fieldID(Int(field.key), transaction)
                guard let (word, payload) = try generation.value(of: key, in: record, id, transaction) else { continue }
                if try differs(parsed.fields[index].cell, word, payload, field, &pairs, transaction) { return true }
            }
        }
        return false
    }

    /// Whether a value differs from a stored one, as far as that can be told without looking into the parts that both
    /// have, which go to `pairs`. The recursion is as deep as the field's type has lists.
    private mutating func differs(
        _ cell: ParsedCell, _ word: ValueWord, _ payload: PayloadView, _ field: FieldOp,
        _ pairs: inout Pairs<RecordID>, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        switch (cell.kind, word.tag) {
        case (.object, .part), (.object, .widePart):
            let object = cell.offset
            guard parsed.isPart(object) else { return true }
            if !isAlwaysMerged(object, field) { pairs.rest.append((object, try payload.record(word))) }
            return false
        case (.object, .reference), (.object, .wideReference):
            let key = unsafe parsed.key(of: cell.offset)
            guard unsafe !key.isEmpty else { return true }
            return unsafe try storedRecord(of: cell.offset, key: key, transaction) != payload.record(word)
        case (.list, .list):
            let elements = try payload.list(word)
            guard elements.count == Int(cell.count) else { return true }
            for index in 0..<elements.count {
                let element = parsed.items[cell.offset + index]
                if try differs(element, elements[index], payload, field, &pairs, transaction) { return true }
            }
            return false
        default:
            // Records have no part in it: what is left holds no objects.
            let values = ParsedValues(parsed: parsed, records: [])
            if cell.kind == .object { return true }
            return try !equals(cell, word, payload, values, transaction)
        }
    }

    // MARK: With what the response has elsewhere

    /// Whether two objects of the response, which stand for the same field, are different ones.
    mutating func contradicts(
        _ object: Int, twin other: Int, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        var pairs = Pairs(rest: [(object, other)])
        while let (object, other) = pairs.rest.popLast() {
            if parsed.objects[object].type != parsed.objects[other].type { return true }
            if compared.isEmpty {
                compared = Array(repeating: (0, ParsedCell(.absent)), count: layout.plan.keys.count)
            }
            comparisons += 1
            for index in parsed.objects[other].fields where isStored(index) {
                let field = layout.fields[Int(parsed.fields[index].field)]
                let (_, key) = try fieldID(Int(field.key), transaction)
                compared[Int(key)] = (comparisons, parsed.fields[index].cell)
            }
            for index in parsed.objects[object].fields where isStored(index) {
                let field = layout.fields[Int(parsed.fields[index].field)]
                let (_, key) = try fieldID(Int(field.key), transaction)
                guard compared[Int(key)].comparison == comparisons else { continue }
                if differs(parsed.fields[index].cell, compared[Int(key)].cell, field, &pairs) { return true }
            }
        }
        return false
    }

    /// As the other `differs`, for two values of the response.
    private func differs(
        _ cell: ParsedCell, _ other: ParsedCell, _ field: FieldOp, _ pairs: inout Pairs<Int>
    ) -> Bool {
        switch (cell.kind, other.kind) {
        case (.object, .object):
            let (key, otherKey) = unsafe (parsed.key(of: cell.offset), parsed.key(of: other.offset))
            guard unsafe key.isEmpty, unsafe otherKey.isEmpty else { return unsafe !hasSameBytes(key, otherKey) }
            if !isAlwaysMerged(cell.offset, field) { pairs.rest.append((cell.offset, other.offset)) }
            return false
        case (.list, .list):
            return cell.count != other.count
                || (0..<Int(cell.count)).contains { index in
                    differs(parsed.items[cell.offset + index], parsed.items[other.offset + index], field, &pairs)
                }
        case (.null, .absent), (.absent, .null): return false
        default: return !ParsedValues(parsed: parsed, records: []).equals(cell, other)
        }
    }

    /// A part of which the schema says that it is always the same says nothing of the part that holds it.
    private func isAlwaysMerged(_ object: Int, _ field: FieldOp) -> Bool {
        let policy = field.parts ?? layout.cases[Int(parsed.objects[object].caseIndex)].parts
        return policy == .merge && field.listDepth == 0
    }
}
