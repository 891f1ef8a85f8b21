/// What the parser stops for, before it has been given a place.
enum ParseFailure: Error {
    case mismatch(String)
    case schemaMismatch(String)
    case notAResponse(String)
}

/// What the response and the parser have to say of errors.
extension ResponseParser {
    /// The fields whose null stands at or above the path of an error. Where an element of a list is null for that
    /// reason, the field that holds the list.
    func unansweredFields(_ errors: [GraphQLError], from root: Int) -> Set<Int> {
        var unanswered: Set<Int> = []
        for error in errors {
            guard let path = error.path else { continue }
            var cell = ParsedCell(.object, payload: UInt64(root))
            var holder: Int?
            walk: for component in path.components {
                switch component {
                case .field(let name):
                    guard cell.kind == .object else { break walk }
                    let object = objects[cell.offset]
                    let range = Int(object.fieldStart)..<Int(object.fieldStart + object.fieldCount)
                    guard
                        let field = range.first(where: {
                            layout.plan.fields[Int(fields[$0].field)].responseKey == name
                        })
                    else { break walk }
                    holder = field
                    cell = fields[field].cell
                case .index(let index):
                    guard cell.kind == .list, index >= 0, index < Int(cell.count) else { break walk }
                    cell = items[cell.offset + index]
                }
                if cell.kind == .null { break }
            }
            if cell.kind == .null, let holder { unanswered.insert(holder) }
        }
        return unanswered
    }

    func explain(_ error: any Error) -> RecordError {
        switch error {
        case let error as RecordError: error
        case let error as JSONError:
            RecordError(
                error.reason == .nestedTooDeep ? .tooLarge : .responseMalformed, "The response cannot be read",
                path: layout.path(path), cause: error)
        case ParseFailure.mismatch(let what):
            RecordError(.responseMismatch, "The response does not fit the operation: \(what)", path: layout.path(path))
        case ParseFailure.schemaMismatch(let what):
            RecordError(.schemaMismatch, "The response does not fit the schema: \(what)", path: layout.path(path))
        case ParseFailure.notAResponse(let what):
            RecordError(.responseMalformed, "The text is not a GraphQL response: \(what)")
        default: RecordError(.responseMalformed, "The response cannot be read", path: layout.path(path), cause: error)
        }
    }
}
