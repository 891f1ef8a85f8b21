/// A checksum against damage, not against malice: LMDB has none of its own.
///
/// Eight bytes at a time are mixed by a multiplication whose constant is odd, so that any single changed bit changes
/// the state, and the state's halves are folded. About one in four billion other changes goes unseen.
///
/// - Parameter seed: What the bytes belong to, so that they are wrong in any other place: the number under which they
///   are stored.
func checksum(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt32 {
    let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
    var state = (UInt64(bytes.count) ^ seed &* 0xD6E8_FEB8_6659_FD93) &* multiplier
    var offset = 0
    while bytes.count - offset >= 8 {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        state = (state ^ word) &* multiplier
        state ^= state >> 29
        offset += 8
    }
    var tail: UInt64 = 0
    while offset < bytes.count {
        tail = tail << 8 | UInt64(bytes[offset])
        offset += 1
    }
    state = (state ^ tail) &* multiplier
    state ^= state >> 32
    return UInt32(truncatingIfNeeded: state)
}
