import LarderGraphQL

extension ArgumentReadings {
    /// What a text may be as a scalar or an enum's value.
    func scalars(_ bytes: Text, _ type: SchemaType) -> Set<Value> {
        let text = String(decoding: bytes, as: UTF8.self)
        switch type.kind {
        case .enumeration: return type.hasEnumValue(text) ? [.string(text)] : []
        case .scalar: break
        default: return []
        }
        switch type.name {
        case "Int", "AWSTimestamp": return Int64(text).map { [.int($0)] } ?? []
        case "Float":
            if let number = Int64(text) { return [.int(number)] }
            guard let first = bytes.first, first == UInt8(ascii: "-") || first &- 0x30 < 10,
                let number = Double(text), number.isFinite, !text.lowercased().hasPrefix("0x")
            else { return [] }
            return [.float(number)]
        case "Boolean":
            // Numbers where the value has come from JSON by way of Objective-C.
            switch text {
            case "true", "1": return [.boolean(true)]
            case "false", "0": return [.boolean(false)]
            default: return []
            }
        case "String", "ID", "AWSDate", "AWSTime", "AWSDateTime", "AWSEmail", "AWSURL", "AWSPhone", "AWSIPAddress":
            return [.string(text)]
        default:
            // Of a scalar that only the program knows, a number may be a number or a text.
            if let number = Int64(text) { return [.int(number), .string(text)] }
            if let number = Double(text), number.isFinite { return [.float(number), .string(text)] }
            switch text {
            case "true": return [.boolean(true), .string(text)]
            case "false": return [.boolean(false), .string(text)]
            default: break
            }
            // It may be a list or an object as well, as programs print them.
            if let first = bytes.first, "[{(<".utf8.contains(first) { return [.string(text), Self.unknown] }
            return [.string(text)]
        }
    }

    /// A list's content as Swift prints strings in lists: in quotation marks, with escapes. Nil where it is none.
    func quotedStrings(_ text: Text) -> [String]? {
        var strings: [String] = []
        var rest = text
        while true {
            guard rest.first == UInt8(ascii: "\""), let (string, after) = quotedString(rest.dropFirst()) else {
                return nil
            }
            strings.append(string)
            if after.isEmpty { return strings }
            guard after.starts(with: ", ".utf8) else { return nil }
            rest = after.dropFirst(2)
        }
    }

    private func quotedString(_ text: Text) -> (String, Text)? {
        var bytes: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            index += 1
            if byte == UInt8(ascii: "\"") { return (String(decoding: bytes, as: UTF8.self), text[index...]) }
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            guard index < text.endIndex else { return nil }
            let escape = text[index]
            index += 1
            switch escape {
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "0"): bytes.append(0x00)
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "'"): bytes.append(escape)
            case UInt8(ascii: "u"):
                guard index < text.endIndex, text[index] == UInt8(ascii: "{"),
                    let close = text[index...].firstIndex(of: UInt8(ascii: "}")),
                    let code = UInt32(String(decoding: text[(index + 1)..<close], as: UTF8.self), radix: 16),
                    let scalar = Unicode.Scalar(code)
                else { return nil }
                bytes.append(contentsOf: String(Character(scalar)).utf8)
                index = close + 1
            default: return nil
            }
        }
        return nil
    }
}
