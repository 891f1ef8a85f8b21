/// Appends the number's bytes, the lowest first.
///
/// Safe: the number's bytes are copied before the closure returns that lends them.
func appendLittleEndian<Number: FixedWidthInteger>(_ number: Number, to bytes: inout [UInt8]) {
    unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
}

/// Appends a number in seven bits a byte, the lowest first; the eighth bit is set where another byte follows.
func appendVariableLength(_ number: UInt64, to bytes: inout [UInt8]) {
    var rest = number
    while rest >= 0x80 {
        bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
}
