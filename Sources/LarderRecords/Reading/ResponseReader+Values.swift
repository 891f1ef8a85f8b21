import LarderGraphQL
import LarderLMDB

/// What stands in a record's field: null, a scalar, a list, or another record.
///
/// Safe: texts are copied into the answer while the transaction lasts to which they belong. `path` has room for every
/// list and object that the plan nests.
extension ResponseReader {
    // The recursion is as deep as the field's type has lists, and then as `object`.
    mutating func value<Snapshot: RecordSnapshot & ~Copyable>(
        _ word: ValueWord, _ payload: PayloadView, _ field: FieldOp, level: Int, into place: Int,
        _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        guard let tag = word.tag else { throw DamagedRecord("a value has an unknown tag") }
        if tag == .null { return try null(field, level: level) }
        if level < Int(field.listDepth) {
            guard tag == .list else { throw misfit(field) }
            return try list(
                try payload.list(word), payload, field, level: level, into: place, &cursor, transaction)
        }
        if field.content == .object {
            guard tag.isRecord else { throw misfit(field) }
            return try object(
                try payload.record(word), selection: Int(field.selection), into: place, &cursor, transaction)
        }
        return try leaf(word, payload, field, into: place, transaction)
    }

    @inline(__always)
    mutating func leaf<Snapshot: RecordSnapshot & ~Copyable>(
        _ word: ValueWord, _ payload: PayloadView, _ field: FieldOp, into place: Int, _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        let cell: ResponseCell
        guard let tag = word.tag else { throw DamagedRecord("a value has an unknown tag") }
        if tag == .null { return try null(field, level: Int(field.listDepth)) }
        guard field.leafTags & 1 << UInt16(tag.rawValue) != 0 else { throw misfit(field) }
        switch tag {
        case .string: cell = try text(.string, word, payload)
        case .smallInt: cell = .int(word.smallInt)
        case .int: cell = ResponseCell(.int, payload: try payload.eightBytes(word))
        case .float: cell = ResponseCell(.float, payload: try payload.eightBytes(word))
        case .no: cell = ResponseCell(.no)
        case .yes: cell = ResponseCell(.yes)
        case .number: cell = try text(.number, word, payload)
        case .json: cell = try text(.json, word, payload)
        case .farString:
            cell = unsafe try text(.string, heap.text(at: payload.place(word), transaction, plan.generation.tables))
        case .farJSON:
            cell = unsafe try text(.json, heap.text(at: payload.place(word), transaction, plan.generation.tables))
        case .null, .list, .reference, .part, .wideReference, .widePart: throw misfit(field)
        }
        builder.store(cell, at: place)
        return .read
    }

    /// A null that was stored. Where none may be, the schema was another then.
    func null(_ field: FieldOp, level: Int) throws -> Outcome {
        guard !field.isNonNull(level) else { throw misfit(field) }
        return .null
    }

    @inline(__always)
    mutating func text(
        _ kind: CellKind, _ word: ValueWord, _ payload: PayloadView
    ) throws -> ResponseCell {
        unsafe try text(kind, payload.text(word))
    }

    @inline(__always)
    mutating func text(
        _ kind: CellKind, _ text: UnsafeRawBufferPointer
    ) throws(ResponseTooLarge) -> ResponseCell {
        unsafe try builder.appendText(kind, text)
    }

    mutating func list<Snapshot: RecordSnapshot & ~Copyable>(
        _ elements: ListView, _ payload: PayloadView, _ field: FieldOp, level: Int, into place: Int,
        _ cursor: inout Cursor, _ transaction: borrowing Snapshot
    ) throws -> Outcome {
        let block = try builder.appendUnsetCells(elements.count)
        var kept = 0
        var isMissing = false
        depth += 1
        let missingBefore = missing.count
        for index in 0..<elements.count {
            unsafe path[depth - 1] = .index(Int32(truncatingIfNeeded: kept))
            let spot = block + kept * ResponseCell.size
            let outcome = try value(
                elements[index], payload, field, level: level + 1, into: spot, &cursor, transaction)
            // A list goes without what is no more.
            if outcome == .deleted { continue }
            kept += 1
            switch settle(outcome, isNonNull: field.isNonNull(level + 1), at: spot) {
            case .read: break
            case .missing: isMissing = true
            case .null, .deleted:
                depth -= 1
                forgetMissing(from: missingBefore)
                return .null
            }
        }
        depth -= 1
        if isMissing { return .missing }
        builder.store(.list(kept, leftOut: elements.count - kept, at: block), at: place)
        return .read
    }

    func misfit(_ field: FieldOp) -> RecordError {
        RecordError(
            .schemaMismatch, "The cached value does not fit the schema; fetch it again",
            path: layout.path(currentPath))
    }
}

extension ValueTag {
    var isRecord: Bool {
        switch self {
        case .reference, .part, .wideReference, .widePart: true
        default: false
        }
    }
}
