/// A part of a response; objects keep the order of their fields.
indirect enum ResponseValue: Sendable {
    case null
    case boolean(Bool)
    case int(Int)
    case float(Double)
    case string(String)
    case list([ResponseValue])
    case object([(String, ResponseValue)])

    var isNull: Bool { if case .null = self { true } else { false } }

    /// The value as JSON in UTF-8.
    var json: [UInt8] {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return bytes
    }

    private func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += Array("null".utf8)
        case .boolean(let value): bytes += Array((value ? "true" : "false").utf8)
        case .int(let value): bytes += Array(String(value).utf8)
        // JSON has no way to write the others.
        case .float(let value): bytes += Array((value.isFinite ? value.description : "null").utf8)
        case .string(let value): Self.write(value, to: &bytes)
        case .list(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let fields):
            bytes.append(UInt8(ascii: "{"))
            for (index, field) in fields.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.write(field.0, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                field.1.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ text: String, to bytes: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20: bytes += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
