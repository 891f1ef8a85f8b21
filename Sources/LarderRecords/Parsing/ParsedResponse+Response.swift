/// Safe: a text is copied into the answer while the response, which owns it, is kept by the call.
extension ParsedResponse {
    /// The data as the server sent it, without going through a cache; nil where there is none.
    ///
    /// - Parameter age: How old it is.
    /// - Throws: `.tooLarge` where there is no memory for it.
    /// - Complexity: O(n) in the response's size.
    package func assembled(age: Duration = .zero) throws(RecordError) -> Response {
        guard let root else { return Response(buffer: nil, errors: errors) }
        // Room for the cells, and as much again for text; a wrong guess costs a move.
        var builder = ResponseBuilder(capacity: fields.count * ResponseCell.size * 2)
        do throws(ResponseTooLarge) {
            builder.store(try append(ParsedCell(.object, payload: UInt64(root)), to: &builder), at: 0)
        } catch { throw RecordError(error) }
        return Response(buffer: builder.finish(shapes: layout.shapes), errors: errors, age: age)
    }

    // The recursion is as deep as the plan.
    private func append(
        _ cell: ParsedCell, to builder: inout ResponseBuilder
    ) throws(ResponseTooLarge) -> ResponseCell {
        switch cell.kind {
        case .string, .number, .json:
            return unsafe try builder.appendText(cell.kind, text(cell))
        case .list:
            let start = try builder.appendCells(Int(cell.count))
            for index in 0..<Int(cell.count) {
                let element = try append(items[cell.offset + index], to: &builder)
                builder.store(element, at: start + index * ResponseCell.size)
            }
            return ResponseCell(.list, count: cell.count, payload: UInt64(start))
        case .object:
            let object = objects[cell.offset]
            let start = try builder.appendCells(Int(layout.cases[Int(object.caseIndex)].visibleCount))
            for index in Int(object.fieldStart)..<Int(object.fieldStart + object.fieldCount) {
                let slot = layout.fields[Int(fields[index].field)].slot
                guard slot >= 0 else { continue }
                let value = try append(fields[index].cell, to: &builder)
                builder.store(value, at: start + Int(slot) * ResponseCell.size)
            }
            return ResponseCell(.object, count: UInt32(object.caseIndex), payload: UInt64(start))
        case .absent, .null, .no, .yes, .int, .float: return cell
        }
    }
}
