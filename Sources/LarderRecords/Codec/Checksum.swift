/// A checksum against damage, not against malice: LMDB has none of its own.
///
/// Eight bytes at a time are mixed by a multiplication whose constant is odd and a shift, both of which can be undone,
/// so that any single changed bit changes the state, and the state's halves are folded. About one in four billion other
/// changes goes unseen. Thirty-two bytes and more are mixed into four states side by side, since each multiplication
/// waits for the one before; the states are then mixed into one.
///
/// - Parameter seed: What the bytes belong to, so that they are wrong in any other place: the number under which they
///   are stored.
func checksum(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt32 {
    let state = unsafe wideChecksum(bytes, seed: seed)
    return UInt32(truncatingIfNeeded: state ^ state >> 32)
}

/// What `checksum` folds: 64 bits, the same in every process and on every machine, so that it may be stored.
///
/// Safe: the caller lends the bytes for the length of the call, which reads a word only where as many bytes are left.
@inline(__always)
func wideChecksum(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
    var state = mixed(UInt64(bytes.count), seed &* 0xD6E8_FEB8_6659_FD93)
    var offset = 0
    if bytes.count >= 32 {
        var (second, third, fourth) = (state &+ 1, state &+ 2, state &+ 3)
        while bytes.count - offset >= 32 {
            state = unsafe mixed(state, word(bytes, offset))
            second = unsafe mixed(second, word(bytes, offset + 8))
            third = unsafe mixed(third, word(bytes, offset + 16))
            fourth = unsafe mixed(fourth, word(bytes, offset + 24))
            offset += 32
        }
        state = mixed(mixed(mixed(state, second), third), fourth)
    }
    while bytes.count - offset >= 8 {
        state = unsafe mixed(state, word(bytes, offset))
        offset += 8
    }
    var tail: UInt64 = 0
    while offset < bytes.count {
        tail = unsafe tail << 8 | UInt64(bytes[offset])
        offset += 1
    }
    return mixed(state, tail)
}

/// One step: for each value of `state`, another result for every `word`, and the other way round.
@inline(__always)
private func mixed(_ state: UInt64, _ word: UInt64) -> UInt64 {
    let product = (state ^ word) &* 0x9E37_79B9_7F4A_7C15
    return product ^ product >> 29
}

@inline(__always)
private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
}
