import LarderGraphQL

extension ResponseValue {
    /// The value as JSON in UTF-8, fields in the order of the operation. What is absent is left out, and stands
    /// as null in a list.
    public var json: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(cell.kind == .object || cell.kind == .list ? buffer.count : 32)
        buffer.appendJSON(cell, to: &bytes)
        return bytes
    }
}

/// Safe: texts are copied while the buffer, which owns them, is kept by the call.
extension ResponseBuffer {
    // Recursion is bounded: a response is as deep as its operation, or as `JSONScanner` allows.
    func appendJSON(_ cell: ResponseCell, to bytes: inout [UInt8]) {
        switch cell.kind {
        case .absent, .null: bytes.append(contentsOf: "null".utf8)
        case .no: bytes.append(contentsOf: "false".utf8)
        case .yes: bytes.append(contentsOf: "true".utf8)
        case .int: bytes.append(contentsOf: String(Int64(bitPattern: cell.payload)).utf8)
        case .float: appendJSONNumber(Double(bitPattern: cell.payload), to: &bytes)
        case .number, .json: unsafe bytes.append(contentsOf: text(cell))
        case .string: unsafe appendJSONString(text(cell), to: &bytes)
        case .list:
            bytes.append(UInt8(ascii: "["))
            for index in 0..<Int(cell.count) {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                appendJSON(self.cell(at: cell.offset + index * ResponseCell.size), to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object:
            bytes.append(UInt8(ascii: "{"))
            var isFirst = true
            for (index, name) in shape(cell).jsonNames.enumerated() {
                let field = self.cell(at: cell.offset + index * ResponseCell.size)
                if field.kind == .absent { continue }
                if !isFirst { bytes.append(UInt8(ascii: ",")) }
                isFirst = false
                bytes.append(contentsOf: name)
                appendJSON(field, to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}
