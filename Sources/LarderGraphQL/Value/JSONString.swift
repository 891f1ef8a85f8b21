/// Appends `text` as a JSON string in UTF-8, quotation marks included.
package func appendJSONString(_ text: String, to bytes: inout [UInt8]) {
    var text = text
    text.withUTF8 { appendJSONString($0, to: &bytes) }
}

/// Appends UTF-8 as a JSON string. Only what JSON requires is escaped, each in its shortest form, so that equal
/// texts are equal strings: cache keys rely on it.
package func appendJSONString(_ text: UnsafeBufferPointer<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    var plain = 0
    for index in text.indices {
        let byte = text[index]
        guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
        bytes.append(contentsOf: text[plain..<index])
        plain = index + 1
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x22, 0x5C: bytes.append(byte)
        default:
            let digits = Array("0123456789abcdef".utf8)
            bytes.append(contentsOf: [0x75, 0x30, 0x30, digits[Int(byte >> 4)], digits[Int(byte & 15)]])
        }
    }
    bytes.append(contentsOf: text[plain...])
    bytes.append(UInt8(ascii: "\""))
}
