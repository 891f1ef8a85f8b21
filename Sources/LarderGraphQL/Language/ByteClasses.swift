extension UInt8 {
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }
    package var isNameStart: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 || self == UInt8(ascii: "_") }
    package var isNameContinue: Bool { isNameStart || isDigit }
    var isLineTerminator: Bool { self == UInt8(ascii: "\n") || self == UInt8(ascii: "\r") }
    var isHexadecimal: Bool { hexadecimalValue != nil }

    var hexadecimalValue: UInt32? {
        if isDigit { return UInt32(self &- UInt8(ascii: "0")) }
        let letter = (self | 0x20) &- UInt8(ascii: "a")
        return letter < 6 ? UInt32(letter) + 10 : nil
    }
}
