import Foundation

/// As any JSON of these values: objects, lists and plain values, custom scalars as what they hold. Absent fields are
/// left out.
extension ResponseValue: Encodable {
    public func encode(to encoder: any Encoder) throws {
        switch cell.kind {
        case .object:
            var container = encoder.container(keyedBy: PathKey.self)
            for (index, name) in names.enumerated() {
                if let field = element(index) { try container.encode(field, forKey: PathKey(stringValue: name)) }
            }
        case .list:
            var container = encoder.unkeyedContainer()
            for index in 0..<count {
                if let element = element(index) { try container.encode(element) } else { try container.encodeNil() }
            }
        case .json: try structure(encoder.codingPath).encode(to: encoder)
        default: try encode(scalar: encoder.singleValueContainer())
        }
    }

    private func encode(scalar container: any SingleValueEncodingContainer) throws {
        var container = container
        if let boolean {
            try container.encode(boolean)
        } else if let int {
            try container.encode(int)
        } else if cell.kind == .float {
            try container.encode(Double(bitPattern: cell.payload))
        } else if let string {
            try container.encode(string)
        } else if let number {
            guard let decimal = Decimal(exactly: number) else {
                throw EncodingError.invalidValue(
                    number,
                    .init(
                        codingPath: container.codingPath, debugDescription: "No type of number keeps \(number)."))
            }
            try container.encode(decimal)
        } else {
            try container.encodeNil()
        }
    }

    /// What a custom scalar's text holds.
    ///
    /// Safe: the value keeps the buffer in which the text lies, and `parsed` copies what it reads.
    private func structure(_ path: [any CodingKey]) throws -> ResponseValue {
        do throws(JSONError) {
            let buffer = unsafe try ResponseBuffer.parsed(buffer.text(cell), .refuse)
            if let value = ResponseValue(buffer: buffer, cell: buffer.cell(at: 0)) { return value }
            return self
        } catch {
            throw EncodingError.invalidValue(
                self,
                .init(
                    codingPath: path, debugDescription: "The JSON of a custom scalar cannot be read.",
                    underlyingError: error))
        }
    }
}
