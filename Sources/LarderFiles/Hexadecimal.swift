/// Bytes in lowercase hexadecimal digits, two for each: how digests stand in names of files, in headers and in keys.
package func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0x0F)]] }, as: UTF8.self)
}

/// The bytes that stand there in hexadecimal digits; nil where it is not two digits for each.
package func bytes(hexadecimal text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: digits.count, by: 2) {
        guard let high = hexadecimalValue(digits[start]), let low = hexadecimalValue(digits[start + 1]) else {
            return nil
        }
        bytes.append(high << 4 | low)
    }
    return bytes
}

private func hexadecimalValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
}
