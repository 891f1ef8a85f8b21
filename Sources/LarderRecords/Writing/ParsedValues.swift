import LarderGraphQL

/// The values of a parsed response, once its objects have become records.
///
/// Safe: `parsed` keeps the texts of the response; the record's and the far texts belong to the caller's transaction,
/// and none of them is used after the call.
struct ParsedValues {
    let parsed: ParsedResponse
    /// By object of the response.
    let records: [RecordID]

    @inline(__always)
    func text(_ cell: ParsedCell) -> UnsafeRawBufferPointer {
        unsafe parsed.text(cell)
    }

    @inline(__always)
    func isPart(_ object: Int) -> Bool { parsed.isPart(object) }

    /// The records of the parts that a value holds, in lists as well.
    func parts(in cell: ParsedCell) -> [RecordID] {
        switch cell.kind {
        case .object: isPart(cell.offset) ? [records[cell.offset]] : []
        case .list: (0..<Int(cell.count)).flatMap { parts(in: parsed.items[cell.offset + $0]) }
        default: []
        }
    }

    /// Whether a value is the same as a stored one.
    ///
    /// - Parameter far: Answers the texts that do not stand in the record.
    // The recursion is as deep as the field's type has lists.
    func equals(
        _ cell: ParsedCell, _ word: ValueWord, _ payload: PayloadView,
        _ far: (TextPlace) throws -> UnsafeRawBufferPointer
    ) throws -> Bool {
        switch (cell.kind, word.tag) {
        case (.null, .null), (.absent, .null), (.no, .no), (.yes, .yes): return true
        case (.int, .smallInt): return Int64(bitPattern: cell.payload) == word.smallInt
        case (.int, .int), (.float, .float): return try payload.eightBytes(word) == cell.payload
        case (.string, .string), (.number, .number):
            return unsafe hasSameBytes(try payload.text(word), text(cell))
        case (.json, .json): return unsafe isSameJSON(try payload.text(word), text(cell))
        case (.json, .farJSON): return unsafe isSameJSON(try far(payload.place(word)), text(cell))
        case (.string, .farString):
            let place = try payload.place(word)
            guard place.count == cell.count else { return false }
            return unsafe hasSameBytes(try far(place), text(cell))
        case (.object, .reference), (.object, .wideReference):
            return try payload.record(word) == records[cell.offset] && !isPart(cell.offset)
        case (.object, .part), (.object, .widePart):
            return try payload.record(word) == records[cell.offset] && isPart(cell.offset)
        case (.list, .list):
            let elements = try payload.list(word)
            guard elements.count == Int(cell.count) else { return false }
            for index in 0..<elements.count {
                guard unsafe try equals(parsed.items[cell.offset + index], elements[index], payload, far) else {
                    return false
                }
            }
            return true
        default: return false
        }
    }

    /// Whether two values that hold neither objects nor lists are the same.
    func equals(_ cell: ParsedCell, _ other: ParsedCell) -> Bool {
        guard cell.kind == other.kind else { return false }
        return switch cell.kind {
        case .absent, .null, .no, .yes: true
        case .int, .float: cell.payload == other.payload
        case .number, .string: unsafe hasSameBytes(text(cell), text(other))
        case .json: unsafe isSameJSON(text(cell), text(other))
        case .list, .object: false
        }
    }

    /// What a custom scalar holds is the same in whatever order its members stand, and whatever space is between them.
    private func isSameJSON(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        if unsafe hasSameBytes(left, right) { return true }
        guard let left = unsafe try? Value(json: Array(left)), let right = unsafe try? Value(json: Array(right)) else {
            return false
        }
        return left == right
    }
}
