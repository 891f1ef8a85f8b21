/// Percent-encoding as Signature Version 4 asks for it: all but RFC 3986's unreserved characters, in capitals.
///
/// S3 encodes a path once and leaves it as it is: no `.` or `..` is resolved, no `//` is made one. (Other services
/// resolve the path and encode it twice.)
package enum URIEncoding {
    /// Text as the name or the value of a parameter of a query.
    package static func component(_ text: some StringProtocol) -> String { encoded(text.utf8, keepsSlashes: false) }

    /// Text as a path: its slashes stay.
    package static func path(_ text: some StringProtocol) -> String { encoded(text.utf8, keepsSlashes: true) }

    private static func encoded(_ bytes: some Collection<UInt8>, keepsSlashes: Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count * 3)
        for byte in bytes {
            if isUnreserved(byte) || (keepsSlashes && byte == UInt8(ascii: "/")) {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default:
            false
        }
    }

    /// Text out of an answer that S3 was asked to encode (`encoding-type=url`), which writes a space as `+`. Nil where
    /// it is not so encoded, or is not UTF-8.
    package static func decoded(_ text: some StringProtocol) -> String? {
        var result: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"):
                result.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(nibble), let low = rest.popFirst().flatMap(nibble) else {
                    return nil
                }
                result.append(high << 4 | low)
            default:
                result.append(byte)
            }
        }
        return String(validating: result, as: UTF8.self)
    }

    private static func nibble(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
